// Local memory that is no spill: arrays with a run-time index, printf's arguments, slow paths of libm, alloca.
#include <cstdio>
__global__ void pick(const float* x, const int* sel, float* y, int n) {
  float table[32];
  for (int k = 0; k < 32; ++k) table[k] = x[k * n + threadIdx.x];
  float s = 0.f;
  for (int k = 0; k < n; ++k) s += table[sel[k] & 31];
  y[threadIdx.x] = s;
}
__global__ void shout(const float* x, int n) {
  if (x[threadIdx.x] > 1.f) printf("%d %f %s\n", n, x[threadIdx.x], "loud");
}
__global__ void trig(double* x) { x[threadIdx.x] = sin(x[threadIdx.x]) + tan(x[threadIdx.x]); }
__global__ void fixed(const float* x, float* y) {
  float table[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) table[k] = x[k];
  y[threadIdx.x] = table[3] + table[5];
}
__global__ void bytes(const char* x, char* y, int n) {
  char buf[200];
  for (int k = 0; k < 200; ++k) buf[k] = x[k] ^ n;
  for (int k = 0; k < n; ++k) y[k] = buf[(k * 37) % 200];
}
__global__ void empty() {}
