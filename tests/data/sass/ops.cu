#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cstdint>
#include <cstdio>
struct P { float4 a; double d; int n; };
__device__ __noinline__ float heavy(const float* p, int n) { float s = 0; for (int i = 0; i < n; ++i) s += p[i] * p[i + 1]; return s; }
__global__ void k_noinl(const float* p, float* o, int n) { o[threadIdx.x] = heavy(p, n) + heavy(p + 3, n * 2); }
__global__ void k_div(const float* a, double* d, int n, unsigned long long* u, int* q) {
  int i = threadIdx.x; d[i] = d[i + n] / d[i + 2 * n]; d[i] += sqrt(d[i]); u[i] = u[i + n] / u[i + 2*n]; q[i] = q[i + 1] % n; d[i] *= a[i] / a[i + 1]; }
__global__ void k_math(const float* a, float* o, double* d) { int i = threadIdx.x; o[i] = sinf(a[i]) + expf(a[i]) + rsqrtf(a[i]) + powf(a[i], o[i]) + __sinf(a[i]) + tanhf(a[i]); d[i] = sin(d[i]) + exp(d[i]); }
#if __CUDA_ARCH__ >= 800 || !defined(__CUDA_ARCH__)
__global__ void k_bf(const __nv_bfloat162* b, __nv_bfloat162* c) { int i = threadIdx.x; __nv_bfloat162 t = b[i]; for (int k = 0; k < 16; ++k) t = __hfma2(t, b[i + k], c[i]); c[i] = t; }
#endif
__global__ void k_half(const __half2* a, __half2* o) { int i = threadIdx.x; __half2 s = a[i];
  for (int k = 0; k < 16; ++k) s = __hfma2(s, a[i + k], o[i]); o[i] = __hmax2(s, h2exp(s)); o[i+1] = __hadd2(s, __hmul2(s, s)); if (__hbgt2(s, a[0])) o[i+7] = s; }
__global__ void k_int(const int* a, int* o, const uint2* w, unsigned long long* L) { int i = threadIdx.x; int x = a[i], y = a[i + 1];
  o[i] = __popc(x) + __clz(y) + __brev(x) + __ffs(y) + max(x, y) + abs(x) + __byte_perm(x, y, 0x3210 + i) + (x >> (y & 31)) + __funnelshift_l(x, y, i) + __dp4a(x, y, i) + __mulhi(x, y) + __sad(x, y, 3);
  L[i] = L[i + 1] * L[i + 2] + (L[i] >> y) + (L[i + 3] << x) + (unsigned long long)x * (unsigned)y; uint2 v = w[i]; o[i + 9] = v.x ^ v.y & x; o[i+10] = min(min(x, y), (int)v.x); o[i+11] = max(x + y, 0); }
__global__ void k_cvt(const int* a, float* f, double* d, unsigned char* c, short* s, long long* l) { int i = threadIdx.x; f[i] = a[i]; d[i] = a[i + 1]; c[i] = f[i + 1]; s[i] = d[i + 1]; l[i] = f[i + 2]; l[i+1] = d[i+3]; f[i + 3] = l[i + 4]; f[i + 5] = d[i + 5]; d[i + 7] = f[i + 7]; f[i + 8] = rintf(f[i + 9]); d[i + 9] = floor(d[i + 10]); f[i+10] = c[i+3]; d[i+11] = l[i+3]; f[i+12] = __half2float(((__half*)s)[i]); }
__global__ void k_atom(int* a, float* f, double* d, unsigned long long* u, __half2* h) { __shared__ int s[64]; __shared__ float t[64]; __shared__ unsigned long long w[32]; int i = threadIdx.x; s[i & 63] = 0; t[i & 63] = 0; w[i & 31] = 0; __syncthreads();
  atomicAdd(&s[i & 63], i); atomicAdd(&t[i & 7], f[i]); int o = atomicAdd(a, 1); atomicAdd(f, 1.f); atomicAdd(d, 2.); a[o] = atomicCAS(a + 3, i, o); u[1] = atomicExch(u, 3ull); atomicMax(a + 7, i); u[2] = atomicCAS(u + 4, 3ull, 4ull); s[3] = atomicExch(&s[4], 5); s[5] = atomicCAS(&s[6], 7, i); w[1] = atomicAdd(&w[2], 4ull); w[3] = atomicCAS(&w[4], 1ull, 2ull); atomicAdd(h, h[1]); atomicAdd(&t[9], 1.f); a[9] = atomicAdd(a + 10, i); f[5] = atomicAdd(f + 8, 1.f); d[3] = atomicAdd(d + 4, 1.); a[20] = atomicInc((unsigned*)a + 21, 7); __syncthreads(); a[i] = s[i & 63] + t[i & 63] + w[i & 31]; }
__global__ void k_warp(int* a, float* f) { int i = threadIdx.x; int x = a[i]; x += __shfl_xor_sync(~0u, x, 1); x += __shfl_down_sync(~0u, x, 2); f[i] += __shfl_sync(~0u, f[i], x & 31); x += __ballot_sync(~0u, x > 3); if (__any_sync(~0u, x == 7)) x += __all_sync(~0u, x > 2); 
  double d = f[i]; d += __shfl_up_sync(~0u, d, 3); f[i] += d; x += __match_any_sync(~0u, x); int p; x += __match_all_sync(~0u, x, &p) + p; x += __activemask(); x += __syncthreads_count(x); x+= __syncthreads_or(x); __syncwarp(); a[i] = x + clock() + (int)clock64() + __popc(__activemask());
  unsigned sm; asm volatile("mov.u32 %0, %%smid;" : "=r"(sm)); a[i + 1] = sm; __threadfence(); __threadfence_system(); a[i+2]=1; __nanosleep(20); }
__global__ void k_vec(const float4* a, float4* o, const double2* d, double2* e, const uchar4* c, uchar4* b, short2* s, const longlong2* l, longlong2* m) { int i = threadIdx.x; float4 v = a[i]; v.x += v.w; o[i] = v; double2 w = d[i]; w.x *= w.y; e[i] = w; uchar4 q = c[i]; q.x += q.w; b[i] = q; short2 z = s[i]; z.x += z.y; s[i] = z; longlong2 t = l[i]; t.x += t.y; m[i] = t; 
  unsigned char* r = (unsigned char*)b + 999; r[i] = r[i + 1] + 1; short* y = (short*)s + 333; y[i] = y[i + 1] + 1; }
__global__ void k_local(const float* a, float* o, int n) { float t[40]; for (int i = 0; i < 40; ++i) t[i] = a[i * n]; float s = 0; for (int i = 0; i < n; ++i) s += t[(i * 7 + (int)s) % 40]; o[threadIdx.x] = s; float4 z[4]; z[n & 3] = make_float4(1, 2, 3, s); z[(n + 1) & 3].x = 3; o[4] = z[n >> 2].y; }
__global__ void __launch_bounds__(1024, 2) k_spill(const float* a, float* o, int n) { float r[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) r[i] = a[threadIdx.x + i * n];
  for (int k = 0; k < n; ++k) {
#pragma unroll
    for (int i = 0; i < 64; ++i) r[i] = r[i] * r[(i * 5 + 3) & 63] + a[k]; }
  float s = 0;
#pragma unroll
  for (int i = 0; i < 64; ++i) s += r[i];
  o[threadIdx.x] = s; }
__global__ void k_switch(int* a, int n) { int i = threadIdx.x, x = a[i]; for (int k = 0; k < n; ++k) { switch (a[k] % 12) { case 0: x += 3; break; case 1: x *= a[x]; break; case 2: x ^= 55; break; case 3: x = a[x & 7]; break; case 4: x -= a[3]; break; case 5: x <<= 2; break; case 6: x /= 3; break; case 7: x = ~x; break; case 8: x %= 9; a[x] = 1; break; case 9: x = -x; break; case 10: x = x * x * x; break; default: x = 0; } } a[i] = x; }
typedef int (*F)(int);
__device__ int f0(int x) { return x * 3 + 1; } __device__ int f1(int x) { return x ^ 0x55; } __device__ __noinline__ int fr(int n) { return n < 2 ? 1 : fr(n - 1) + fr(n - 2); }
__device__ F tab[2] = {f0, f1};
__global__ void k_indirect(int* a, int n) { a[threadIdx.x] = tab[n & 1](a[threadIdx.x]) + fr(n); }
__global__ void k_nest(const float* a, float* c, int n, int m) { for (int i = threadIdx.x; i < n; i += 32) { float s = 0; for (int j = 0; j < m; ++j) { if (a[j] < 0) continue; for (int k = 0; k < a[i + j]; ++k) { s += a[k] * a[j]; if (s > 100.f) break; } if (s < -7) return; } c[i] = s; do { s *= .5f; c[i + 1] += s; } while (s > 1.f); } }
__global__ void k_stage(const float* A, const float* B, float* C, int n) { __shared__ float a[16][16], b[16][16]; int x = threadIdx.x, y = threadIdx.y; float s = 0; for (int t = 0; t < n; t += 16) { a[y][x] = A[(blockIdx.y * 16 + y) * n + t + x]; b[y][x] = B[(t + y) * n + blockIdx.x * 16 + x]; __syncthreads(); for (int k = 0; k < 16; ++k) s += a[y][k] * b[k][x]; __syncthreads(); } C[(blockIdx.y * 16 + y) * n + blockIdx.x * 16 + x] = s; }
__global__ void k_tex(cudaTextureObject_t t, cudaTextureObject_t t3, cudaSurfaceObject_t s, float4* o) { int i = threadIdx.x; o[i] = tex2D<float4>(t, i * .1f, i * .2f); o[i + 1].x = tex1Dfetch<float>(t, i); o[i + 2] = tex3D<float4>(t3, i, i, 1.f); float4 q; surf2Dread(&q, s, i, 3); q.x++; surf2Dwrite(q, s, i, 4); o[i + 3] = tex2DLod<float4>(t, i, 3, 2.f); o[i + 4].y = tex2DGrad<float>(t, 1, i, make_float2(1, 2), make_float2(i, 2)); o[i+5] = tex2Dgather<float4>(t, i, 2, 1); o[i+6] = tex2DLayered<float4>(t, i, 3, 4); }
__global__ void k_const(float* o, const P* __restrict__ p, P q) { o[threadIdx.x] = q.a.x + q.d + p[threadIdx.x].d + p[q.n].a.z; }
__constant__ float cc[256];
__global__ void k_cbank(float* o) { o[threadIdx.x] = cc[threadIdx.x * 3 & 255] + cc[4]; printf("%d %f\n", threadIdx.x, o[0]); if (o[3] > 7) __trap(); }
__global__ void k_pred(const float* a, float* o, int n) { int i = threadIdx.x; bool p = a[i] > 1 && a[i + 1] < 2 || a[i + 2] == 3, q = (p ^ (i > n)) && a[5] != a[6]; float x = p ? a[7] : a[8]; if (q) o[i] = x; if (p && !q || i == 3) o[i + 1] = x + 1; unsigned m = 0; for (int k = 0; k < 8; ++k) m |= (a[k + n] > 0) << k; o[i + 3] = m; }
