// Kernels squeezed below what they need, in several access widths.
template <int N>
__device__ __forceinline__ float mix(const float* x, int i) {
  float a[N];
#pragma unroll
  for (int k = 0; k < N; ++k) a[k] = x[i * N + k];
#pragma unroll
  for (int r = 0; r < 6; ++r)
#pragma unroll
    for (int k = 0; k < N; ++k) a[k] = fmaf(a[k], a[(k + r + 1) % N], a[(k * 7 + r) % N]);
  float s = 0.f;
#pragma unroll
  for (int k = 0; k < N; ++k) s += a[k];
  return s;
}
__global__ void __launch_bounds__(1024, 2) tight(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = mix<48>(x, i);
}
__global__ void __launch_bounds__(1024, 1) tight_double(const double* x, double* y, int n) {
  double a[40];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 40; ++k) a[k] = x[i + k * n];
  for (int r = 0; r < n; ++r)
#pragma unroll
    for (int k = 0; k < 40; ++k) a[k] = a[k] * a[(k + 3) % 40] + a[(k * 5 + 1) % 40];
#pragma unroll
  for (int k = 0; k < 40; ++k) y[i + k * n] = a[k];
}
__global__ void __launch_bounds__(1024, 2) tight_vector(const float4* x, float4* y, int n) {
  float4 a[12];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 12; ++k) a[k] = x[i + k * n];
  __syncthreads();
  for (int r = 0; r < n; ++r)
#pragma unroll
    for (int k = 0; k < 12; ++k) {
      a[k].x += a[(k + 5) % 12].y * a[k].w;
      a[k].y -= a[(k + 1) % 12].z * a[k].x;
    }
#pragma unroll
  for (int k = 0; k < 12; ++k) y[i + k * n] = a[k];
}
// A spill and a local array in one kernel: only one of them is a spill.
__global__ void __launch_bounds__(1024, 2) tight_with_array(const float* x, const int* sel, float* y, int n) {
  float table[24];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 24; ++k) table[k] = x[i + k];
  float s = mix<40>(x, i);
  for (int k = 0; k < n; ++k) s = s * table[sel[k] % 24] + mix<32>(x, k);
  y[i] = s;
}
// Predicates and 16-bit values that live across a call-heavy stretch.
__global__ void __launch_bounds__(1024, 2) tight_predicates(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool p[20];
#pragma unroll
  for (int k = 0; k < 20; ++k) p[k] = x[i + k] > 0.5f * k;
  float s = mix<40>(x, i);
  double d = x[i];
  for (int k = 0; k < n; ++k) d = sin(d) + cos(d * k);
#pragma unroll
  for (int k = 0; k < 20; ++k)
    if (p[k]) s += x[k] * s;
  y[i] = s + (float)d;
}
// Spills to shared memory first: static shared memory grows, and ptxas counts only what still goes to local memory.
__global__ void __launch_bounds__(256, 6) spill_to_shared(const float* x, float* y, int n) {
  asm volatile(".pragma \"enable_smem_spilling\";");
  float a[60];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 60; ++k) a[k] = x[i + k * n];
  for (int r = 0; r < n; ++r)
#pragma unroll
    for (int k = 0; k < 60; ++k) a[k] = a[k] * a[(k + 3) % 60] + a[(k * 5 + 1) % 60];
#pragma unroll
  for (int k = 0; k < 60; ++k) y[i + k * n] = a[k];
}
