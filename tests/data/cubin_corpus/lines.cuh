#pragma once
__device__ __forceinline__ float inner(float v) {
  return v * v + 1.f;
}
__device__ __forceinline__ float outer(float v) {
  float w = inner(v);
  return inner(w) - v;
}
