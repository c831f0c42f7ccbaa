// Functions that stay functions: noinline, recursion, calls through a pointer, virtual calls, division helpers.
__device__ __noinline__ float heavy(float x, int n) {
  float a[16];
  for (int k = 0; k < 16; ++k) a[k] = x * k;
  for (int k = 0; k < n; ++k) a[(k * 3) & 15] += a[k & 15];
  return a[n & 15];
}
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__global__ void call_heavy(float* x, int n) { x[threadIdx.x] = heavy(x[threadIdx.x], n); }
__global__ void call_fib(int* x) { x[threadIdx.x] = fib(x[threadIdx.x]); }
__device__ float f1(float x) { return x + 1; }
__device__ float f2(float x) { return x * 2; }
__device__ float (*table[2])(float) = {f1, f2};
__global__ void call_pointer(float* x, int i) { x[threadIdx.x] = table[i](x[threadIdx.x]); }
struct Shape { __device__ virtual float area(float s) const = 0; };
struct Square : Shape { __device__ float area(float s) const override { return s * s; } };
struct Circle : Shape { __device__ float area(float s) const override { return 3.14f * s * s; } };
__global__ void call_virtual(float* x, int which) {
  Square q; Circle c;
  const Shape* s = which ? (const Shape*)&q : (const Shape*)&c;
  x[threadIdx.x] = s->area(x[threadIdx.x]);
}
__global__ void divide(double* x, float* y, long long* z, long long d) {
  x[threadIdx.x] /= x[threadIdx.x + 1];
  y[threadIdx.x] = sqrtf(y[threadIdx.x]) / y[threadIdx.x + 2];
  z[threadIdx.x] /= d;
}
__device__ __noinline__ float middle(float x, int n) { return heavy(x + 1, n) * heavy(x, n + 1); }
__global__ void call_chain(float* x, int n) { x[threadIdx.x] = middle(x[threadIdx.x], n) + middle(1.f, n); }
__global__ void __launch_bounds__(1024, 2) call_and_spill(const float* x, float* y, int n) {
  float a[40];
#pragma unroll
  for (int k = 0; k < 40; ++k) a[k] = x[threadIdx.x + k];
  float s = heavy(x[0], n);
#pragma unroll
  for (int k = 0; k < 40; ++k) y[threadIdx.x + k * n] = a[k] * s;
}
// A function whose address is taken has a frame of its own: the cubin's frame size of a kernel that calls it is that of
// the whole stack.
__device__ float sum(float x, int n) { return x + n; }
__device__ float (*framed[2])(float, int) = {heavy, sum};
__global__ void call_framed(float* x, int n) { x[threadIdx.x] = framed[n & 1](x[threadIdx.x], n); }
__global__ void call_framed_with_own(float* x, int n) {
  float own[8];
  for (int k = 0; k < 8; ++k) own[k] = framed[k & 1](x[threadIdx.x], n);
  x[threadIdx.x] = own[n & 7];
}
