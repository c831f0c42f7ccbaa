#pragma once

template <int N>
__device__ __forceinline__ float load_tile(const float* in, int index) {
  return in[index * N];
}
