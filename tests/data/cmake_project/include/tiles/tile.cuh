#pragma once
#include "load.cuh"

template <int N>
__global__ void copy_tile(const float* in, float* out) {
  out[threadIdx.x] = load_tile<N>(in, threadIdx.x);
}
