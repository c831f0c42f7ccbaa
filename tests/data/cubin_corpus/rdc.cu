//@ flags: -rdc=true
// Not linked yet: functions of other files, of this one, and static data.
extern __device__ float far_away(float, int);
extern __shared__ int pool[];
__device__ int counter;
__device__ float near_by(float x, int n) {
  float t[20];
  for (int k = 0; k < 20; ++k) t[k] = x + k;
  for (int k = 0; k < n; ++k) t[k % 20] *= t[(k * 3) % 20];
  return t[n % 20];
}
__global__ void uses_far(float* x, int n) {
  __shared__ float s[128];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = far_away(s[threadIdx.x ^ 1], n);
}
__global__ void __launch_bounds__(256, 2) uses_near(float* x, int n) {
  x[threadIdx.x] = near_by(x[threadIdx.x], n) + counter + pool[threadIdx.x];
}
__global__ void __launch_bounds__(1024, 2) spills_unlinked(const float* x, float* y, int n) {
  float a[40];
#pragma unroll
  for (int k = 0; k < 40; ++k) a[k] = x[threadIdx.x + k];
  float s = far_away(x[0], n);
#pragma unroll
  for (int k = 0; k < 40; ++k) y[threadIdx.x + k * n] = a[k] * s;
}
