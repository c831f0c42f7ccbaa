// Names as people write them: templates, lambdas, unnamed namespaces, operators, nested classes.
#include <cstddef>
#include <cuda_fp16.h>
#include "names.cuh"
namespace {
__global__ void tight(float* x) { x[threadIdx.x] *= 2.f; }
struct Local { float v; };
template <typename T> __global__ void
hidden(T* x)
{
  x[threadIdx.x].v += 1.f;
}
}  // namespace
namespace outer { inline namespace v2 { namespace {
template <int A, unsigned B, bool C, char D, long long E, size_t F>
__global__ void many(float* x) { x[A] = B + C + D + E + F; }
} } }
template <int TILE>
__global__ void tiled(const float* a, float* b, int n) {
  __shared__ float s[TILE][TILE + 1];
  s[threadIdx.y][threadIdx.x] = a[threadIdx.y * n + threadIdx.x];
  __syncthreads();
  b[threadIdx.x * n + threadIdx.y] = s[threadIdx.x][threadIdx.y];
}
template <typename T, int V>
__global__ void axpy(T a, const T* x, T* y, int n) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * V;
#pragma unroll
  for (int k = 0; k < V; ++k)
    if (i + k < n) y[i + k] = a * x[i + k] + y[i + k];
}
template <typename F> __global__ void apply(F f, float* x) { x[threadIdx.x] = f(x[threadIdx.x]); }
template <template <class> class Box, typename T> __global__ void boxed(Box<T> b, T* out) { *out = b.get(); }
template <class T> struct Box { T v; __device__ T get() const { return v; } };
template <class... Ts> __global__ void pack(float* out, Ts... v) { float s = 0; ((s += (float)v), ...); *out = s; }
template <auto P> __global__ void by_pointer(float* x) { x[0] = P(x[1]); }
__device__ float twice(float x) { return 2 * x; }
enum class Kind { slow, fast };
template <Kind K> __global__ void kind(float* x) { x[0] = K == Kind::fast ? 1.f : 2.f; }
struct Matrix {
  template <int R> struct Row { int v[R]; __device__ int operator[](int i) const { return v[i]; } };
  static constexpr int n = 4;
};
template <class R> __global__ void nested(R r, int* o) { o[0] = r[threadIdx.x]; }
#define MAKE_KERNEL(name, op) \
  __global__ void name(float* x) { x[threadIdx.x] = x[threadIdx.x] op 3.f; }
MAKE_KERNEL(made_add, +)
MAKE_KERNEL(made_mul, *)
extern "C" __global__ void plain_c(float* x) { x[0] = 1; }
__global__ void
__launch_bounds__(
    128)
declarator_below(
    const float* __restrict__ a,
    float* __restrict__ b
)
{
  b[threadIdx.x] = a[threadIdx.x];
}
__global__ void half_in(__half h, __half2* o) { o[0] = __half2(h, h); }
void launch(float* x, int* o) {
  tight<<<1, 32>>>(x);
  hidden<<<1, 32>>>((Local*)x);
  outer::many<1, 2u, true, 'x', -5, 7><<<1, 1>>>(x);
  tiled<16><<<1, 32>>>(x, x, 1);
  tiled<32><<<1, 32>>>(x, x, 1);
  axpy<float, 1><<<1, 32>>>(1.f, x, x, 1);
  axpy<double, 4><<<1, 32>>>(1., (double*)x, (double*)x, 1);
  float bias = 2;
  apply<<<1, 1>>>([bias] __device__(float v) { return v + bias; }, x);
  apply<<<1, 1>>>([=] __device__(float v) { return v * bias; }, x);
  boxed<<<1, 1>>>(Box<float>{1}, x);
  pack<<<1, 1>>>(x, 1, 2.f, 3.0, 'c');
  pack<<<1, 1>>>(x);
  by_pointer<twice><<<1, 1>>>(x);
  kind<Kind::slow><<<1, 1>>>(x);
  kind<Kind::fast><<<1, 1>>>(x);
  nested<<<1, 1>>>(Matrix::Row<3>{}, o);
  from_header<short><<<1, 1>>>(o);
}
