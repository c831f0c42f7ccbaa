#include <tiles/load.cuh>

__device__ float far_away(float value);

__global__ void reduce_rows(const float* in, float* out) {
  out[threadIdx.x] = far_away(load_tile<REDUCE_WARPS>(in, threadIdx.x));
}
