#pragma once
template <typename T>
__global__ void from_header(int* o) {
  o[threadIdx.x] = sizeof(T);
}
