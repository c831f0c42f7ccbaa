#include <tiles/tile.cuh>

template __global__ void copy_tile<TILE_WIDTH>(const float*, float*);

__global__ void gemm_step(const float* a, const float* b, float* c) {
  c[threadIdx.x] += __expf(a[threadIdx.x]) * b[threadIdx.x];
}
