// Small, for cubins of older ptxas releases that the tests' own toolkit cannot make; see README.md.
extern __shared__ float dyn[];
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__global__ void recurses(int* x) { x[threadIdx.x] = fib(x[threadIdx.x]); }
__global__ void __launch_bounds__(256, 6) spills(const float* x, float* y, int n) {
  float a[44];
#pragma unroll
  for (int k = 0; k < 44; ++k) a[k] = x[threadIdx.x + k * n];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < 44; ++k) y[threadIdx.x + k * n] = a[43 - k] * a[(k * 7) % 44];
}
__global__ void indexes(const float* x, const int* sel, float* y, int n) {
  float table[12];
#pragma unroll
  for (int k = 0; k < 12; ++k) table[k] = x[k * n + threadIdx.x];
  y[threadIdx.x] = table[sel[threadIdx.x]];
}
__device__ __forceinline__ float scaled(float v, float f) { return v * f + 1.f; }
__global__ void dynamic(const float* x, float* y) {
  __shared__ float fixed[100];
  dyn[threadIdx.x] = x[threadIdx.x];
  fixed[threadIdx.x % 100] = 1.f;
  asm volatile("bar.sync 3, 64;" ::: "memory");
  y[threadIdx.x] = scaled(dyn[threadIdx.x ^ 1], fixed[threadIdx.x % 7]);
}
__global__ void plain(float* y) { y[threadIdx.x] = 0.f; }
