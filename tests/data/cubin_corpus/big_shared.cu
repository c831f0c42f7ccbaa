//@ arch: sm_90a sm_100a sm_120a
// More than 48 KB of static shared memory, which ptxas takes on these targets only.
template <int N> __global__ void tile_sum(const float* x, float* y) {
  __shared__ float s[N][128];
  for (int k = 0; k < N; ++k) s[k][threadIdx.x] = x[k * 128 + threadIdx.x];
  __syncthreads();
  float t = 0;
  for (int k = 0; k < N; ++k) t += s[k][threadIdx.x ^ 1];
  y[threadIdx.x] = t;
}
template __global__ void tile_sum<98>(const float*, float*);
template __global__ void tile_sum<64>(const float*, float*);
