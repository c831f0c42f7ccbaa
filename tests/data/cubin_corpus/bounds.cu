// Launch bounds in every form, constants, parameters.
__constant__ float table[300];
struct Big { float v[200]; };
__global__ void free_size(float* x) { x[threadIdx.x] = 1; }
__global__ void __launch_bounds__(256) max_only(float* x) { x[threadIdx.x] = 1; }
__global__ void __launch_bounds__(384, 2) with_min(float* x) { x[threadIdx.x] = 1; }
#if __CUDA_ARCH__ >= 900
__global__ void __launch_bounds__(128, 3, 4) with_cluster(float* x) { x[threadIdx.x] = 1; }
__global__ void __cluster_dims__(2, 1, 1) fixed_cluster(float* x) { x[threadIdx.x] = 1; }
__global__ void __block_size__((64, 2, 1), (2, 1, 1)) block_and_cluster(float* x) { x[threadIdx.x] = 1; }
__global__ void __block_size__((64, 2, 1)) required(float* x) { x[threadIdx.x] = 1; }
#endif
__global__ void __maxnreg__(24) max_registers(float* x, const float* y) {
  float a[32];
#pragma unroll
  for (int k = 0; k < 32; ++k) a[k] = y[k];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < 32; ++k) x[k] = a[k] * a[31 - k];
}
__global__ void big_parameter(Big b, float* x) { x[threadIdx.x] = b.v[threadIdx.x]; }
__global__ void constant_table(float* x) { x[threadIdx.x] = table[threadIdx.x] + 1.2345678901234; }
__global__ void constant_doubles(double* x) {
  x[threadIdx.x] = x[threadIdx.x] * 1.23456789012345 + 9.8765432109876;
}
