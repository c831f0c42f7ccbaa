//@ flags: -rdc=true
// Not linked yet, with variables that have a size but no bytes in the file, and more of them than the file is long.
__device__ float table[20000];
__device__ float first[4] = {1, 2, 3, 4};
__constant__ float factors[100];
__managed__ float seen[300];
__device__ __noinline__ float far_away(float x) {
  __shared__ float block[10000];
  float all[300];
  for (int k = 0; k < 300; ++k) all[k] = x * k;
  block[threadIdx.x] = x + all[int(x) & 255];
  __syncthreads();
  return block[9999 - threadIdx.x] + table[1] + first[2] + factors[2] + seen[2];
}
__global__ void holds_data(float* p) {
  __shared__ float own[77];
  own[threadIdx.x] = p[3];
  __syncthreads();
  p[0] = far_away(p[1]) + own[3];
}
__global__ void calls_nothing(float* p) { p[threadIdx.x] = table[threadIdx.x]; }
