// Lines that are not where they seem: headers, chains of calls, #line, macros, declarators over several lines.
#include "lines.cuh"
#define STORE(place, value) \
  do {                      \
    (place) = (value);      \
  } while (0)
#define KERNEL_HEAD(name) __global__ void name(float* x, int n)
KERNEL_HEAD(from_macro) {
  STORE(x[threadIdx.x], x[n] * 3.f);
}
__global__
void
// the name stands alone
several_lines
(
    float* x,
    const float* y)
{
  x[threadIdx.x] = outer(y[threadIdx.x]);
}
__global__ void chain(float* x, const float* y, int n) {
  float s = 0.f;
  for (int k = 0; k < n; ++k) s += outer(y[k]) * inner(y[k + 1]);
  STORE(x[threadIdx.x], s / y[n]);
}
template <typename Op> __device__ float reduce(const float* y, int n, Op op) {
  float s = 0.f;
  for (int k = 0; k < n; ++k) s = op(s, y[k]);
  return s;
}
__global__ void with_lambda(float* x, const float* y, int n) {
  x[threadIdx.x] = reduce(y, n, [=](float a, float b) {
    return inner(a) + outer(b);
  });
}
#line 100 "generated.tmpl"
__global__ void generated(float* x) {
#line 8 "other.tmpl"
  x[threadIdx.x] += 1.f;
#line 30 "other.tmpl"
  x[threadIdx.x + 32] = inner(x[threadIdx.x]);
#line 42 "lines.cu"
}
