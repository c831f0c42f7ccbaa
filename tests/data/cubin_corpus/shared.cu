// Shared memory, static and dynamic, and barriers, hardware and named.
extern __shared__ float dyn[];
__global__ void only_dynamic(const float* x, float* y) {
  dyn[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = dyn[threadIdx.x ^ 1];
}
__global__ void both(const float* x, float* y) {
  __shared__ float fixed[333];
  fixed[threadIdx.x] = x[threadIdx.x];
  dyn[threadIdx.x] = x[threadIdx.x + 1];
  __syncthreads();
  y[threadIdx.x] = fixed[threadIdx.x ^ 1] + dyn[threadIdx.x ^ 3];
}
__global__ void only_static(const float* x, float* y) {
  __shared__ double a[100];
  __shared__ char b[7];
  a[threadIdx.x] = x[threadIdx.x];
  b[threadIdx.x % 7] = 1;
  __syncthreads();
  y[threadIdx.x] = a[threadIdx.x ^ 1] + b[threadIdx.x % 3];
}
__global__ void none(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }
__global__ void named(float* x) {
  __shared__ float s[256];
  s[threadIdx.x] = x[threadIdx.x];
  asm volatile("bar.sync 5, 64;" ::: "memory");
  x[threadIdx.x] = s[threadIdx.x ^ 1];
  asm volatile("bar.sync 0;" ::: "memory");
  x[threadIdx.x] += s[threadIdx.x ^ 2];
}
__global__ void run_time_barrier(float* x, int id) {
  __shared__ float s[256];
  s[threadIdx.x] = x[threadIdx.x];
  asm volatile("bar.sync %0, 64;" ::"r"(id) : "memory");
  x[threadIdx.x] = s[threadIdx.x ^ 1];
}
__global__ void producer_consumer(float* x) {
  __shared__ float s[256];
  if (threadIdx.x < 128) {
    s[threadIdx.x] = x[threadIdx.x];
    asm volatile("bar.arrive 1, 256;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 256;" ::: "memory");
    x[threadIdx.x] = s[threadIdx.x - 128];
  }
  asm volatile("bar.sync 2, 256;" ::: "memory");
  x[threadIdx.x] += s[threadIdx.x ^ 7];
}
__device__ __noinline__ float stage(float* s, int i) {
  s[i] = i;
  __syncthreads();
  return s[i ^ 1];
}
__global__ void barrier_in_callee(float* x) {
  __shared__ float s[64];
  x[threadIdx.x] = stage(s, threadIdx.x);
}
