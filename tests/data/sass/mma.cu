#include <cstdint>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
#define LD4(x) uint32_t x##0 = in[t * 16 + __COUNTER__], x##1 = in[t * 16 + __COUNTER__], x##2 = in[t * 16 + __COUNTER__], x##3 = in[t * 16 + __COUNTER__]
__global__ void m_wmma(const half* a, const half* b, float* c, int n) { wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa; wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb; wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc; wmma::fill_fragment(fc, 0.f); for (int k = 0; k < n; k += 16) { wmma::load_matrix_sync(fa, a + k, n); wmma::load_matrix_sync(fb, b + k, n); wmma::mma_sync(fc, fa, fb, fc); } wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major); }
__global__ void m_wmma8(const signed char* a, const signed char* b, int* c, int n) { wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa; wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> fb; wmma::fragment<wmma::accumulator, 16, 16, 16, int> fc; wmma::fill_fragment(fc, 0); for (int k = 0; k < n; k += 16) { wmma::load_matrix_sync(fa, a + k, n); wmma::load_matrix_sync(fb, b + k, n); wmma::mma_sync(fc, fa, fb, fc); } wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major); }
__global__ void m_ldsm(const uint32_t* in, uint32_t* out, int n) { __shared__ alignas(16) uint32_t s[1024]; int t = threadIdx.x; for (int i = 0; i < 8; ++i) s[t + i * 128] = in[t + i * 128]; __syncthreads(); uint32_t p = (uint32_t)__cvta_generic_to_shared(s + t * 4), a, b, c, d, e, f, g; asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(p)); asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(e), "=r"(f) : "r"(p)); asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(g) : "r"(p)); 
#if __CUDA_ARCH__ >= 750
 asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(g));
#endif
 out[t] = a + b + c + d + e + f + g; }
__global__ void m_1688(const uint32_t* in, float* out, int n) { int t = threadIdx.x; float d0 = 0, d1 = 0, d2 = 0, d3 = 0; for (int k = 0; k < n; ++k) { uint32_t a0 = in[t + k], a1 = in[t + k * 3], b0 = in[t + k * 5]; asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "r"(a0), "r"(a1), "r"(b0)); } out[t] = d0 + d1 + d2 + d3; 
 uint32_t h0 = in[7 + t], h1 = in[8 + t]; asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%0,%1};" : "+r"(h0), "+r"(h1) : "r"(in[t]), "r"(in[t + 1]), "r"(in[t + 2])); out[t + 99] = h0 + h1; 
 int i0 = in[t + 50], i1 = in[t + 52]; asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+r"(i0), "+r"(i1) : "r"(in[t + 3]), "r"(in[t + 4])); out[t + 199] = i0 + i1; }
#if __CUDA_ARCH__ >= 800 || !defined(__CUDA_ARCH__)
#define A4 "r"(in[t]), "r"(in[t + 11]), "r"(in[t + 22]), "r"(in[t + 33])
#define B2 "r"(in[t + 44]), "r"(in[t + 55])
__global__ void m_80(const uint32_t* in, float* out, double* dd, int n) { int t = threadIdx.x; float d0 = 0, d1 = 0, d2 = 0, d3 = 0; uint32_t h0 = 0, h1 = 0; int i0 = 0, i1 = 0, i2 = 0, i3 = 0; double q0 = dd[t], q1 = dd[t + 1];
 for (int k = 0; k < n; ++k) {
 asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : A4, B2);
 asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : A4, B2);
 asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};" : "+r"(h0), "+r"(h1) : A4, B2);
 asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : A4, B2);
 asm volatile("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "r"(in[t]), "r"(in[t + 2]), "r"(in[t + 4]));
 asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" : "+r"(i0), "+r"(i1), "+r"(i2), "+r"(i3) : B2, "r"(in[t + 9]));
 asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+r"(i0), "+r"(i1), "+r"(i2), "+r"(i3) : A4, B2);
 asm volatile("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+r"(i0), "+r"(i1), "+r"(i2), "+r"(i3) : A4, B2);
 asm volatile("mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+r"(i0), "+r"(i1) : B2);
 asm volatile("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc {%0,%1}, {%2}, {%3}, {%0,%1};" : "+r"(i0), "+r"(i1) : B2);
 asm volatile("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" : "+r"(i0), "+r"(i1), "+r"(i2), "+r"(i3) : B2, "r"(in[t + 8]));
 asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+r"(i0), "+r"(i1), "+r"(i2), "+r"(i3) : A4, B2);
 asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(q0), "+d"(q1) : "d"(dd[t + 2]), "d"(dd[t + 3]));
 asm volatile("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : A4, A4, "r"(in[t + 66]));
 asm volatile("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%0,%1,%2,%3}, %8, 0x1;" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : B2, B2, "r"(in[t + 67]));
 asm volatile("mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;" : "+r"(i0), "+r"(i1), "+r"(i2), "+r"(i3) : A4, A4, "r"(in[t + 68]));
 asm volatile("mma.sp.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%0,%1,%2,%3}, %8, 0x0;" : "+r"(i0), "+r"(i1), "+r"(i2), "+r"(i3) : B2, B2, "r"(in[t + 69]));
 asm volatile("mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : A4, A4, "r"(in[t + 70]));
#if __CUDA_ARCH__ >= 890
 asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : A4, B2);
 asm volatile("mma.sp.sync.aligned.m16n8k64.row.col.f32.e4m3.e5m2.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : A4, A4, "r"(in[t + 71]));
#endif
#if __CUDA_ARCH__ >= 900
 asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};" : "+d"(q0), "+d"(q1), "+d"(dd[5]), "+d"(dd[6]) : "d"(dd[t + 2]), "d"(dd[t + 3]), "d"(dd[t + 4]));
 asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+d"(q0), "+d"(q1), "+d"(dd[5]), "+d"(dd[6]) : "d"(dd[t + 2]), "d"(dd[t + 3]), "d"(dd[t + 4]), "d"(dd[t + 7]), "d"(dd[t + 8]), "d"(dd[t + 9]));
 asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%0,%1,%2,%3};" : "+d"(q0), "+d"(q1), "+d"(dd[5]), "+d"(dd[6]) : "d"(dd[t + 2]), "d"(dd[t + 3]), "d"(dd[t + 4]), "d"(dd[t + 7]), "d"(dd[t + 8]), "d"(dd[t + 9]), "d"(dd[t + 10]), "d"(dd[t + 17]), "d"(dd[t + 18]), "d"(dd[t + 19]), "d"(dd[t + 20]), "d"(dd[t + 27]));
#endif
#ifdef M120
 asm volatile("mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e2m1.e3m2.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : A4, B2);
 asm volatile("mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, %10, {0,1}, %11, {0,1};" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : A4, B2, "r"(in[t + 5]), "r"(in[t + 6]));
 asm volatile("mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, %10, {0,0}, %11, {0,0};" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : A4, B2, "r"(in[t + 5]), "r"(in[t + 6]));
 asm volatile("mma.sync.aligned.kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, %10, {0,0}, %11, {0,0};" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : A4, B2, "r"(in[t + 5]), "r"(in[t + 6]));
#endif
 } out[t] = d0 + d1 + d2 + d3 + i0 + i1 + i2 + i3 + h0 + h1; dd[t] = q0 + q1; }
__global__ void m_cpasync(const float4* g, float4* o, int n) { __shared__ float4 s[2][128]; int t = threadIdx.x; uint32_t p = (uint32_t)__cvta_generic_to_shared(&s[0][t]); asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\ncp.async.commit_group;" :: "r"(p), "l"(g + t)); float4 a = {}; for (int k = 1; k < n; ++k) { asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" :: "r"(p + (k & 1) * 2048), "l"(g + t + k * 128)); asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\ncp.async.commit_group;" :: "r"(p + (k & 1) * 2048), "l"(g + t + k * 128), "r"(k & 4)); asm volatile("cp.async.wait_group 1;" ::: "memory"); __syncthreads(); float4 v = s[(k + 1) & 1][127 - t]; a.x += v.x * v.y; a.z += v.z * v.w; __syncthreads(); } o[t] = a; int r = t; asm volatile("redux.sync.max.s32 %0, %0, 0xffffffff;" : "+r"(r)); o[t].w = r; }
#endif
#if __CUDA_ARCH__ < 800 || !defined(__CUDA_ARCH__)
__global__ void m_884(const uint32_t* in, float* out) { int t = threadIdx.x; 
 float d[8] = {}; uint32_t a0 = in[t], a1 = in[t+32], b0 = in[t+64], b1 = in[t+96];
 asm volatile("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9}, {%10,%11}, {%0,%1,%2,%3,%4,%5,%6,%7};" : "+f"(d[0]),"+f"(d[1]),"+f"(d[2]),"+f"(d[3]),"+f"(d[4]),"+f"(d[5]),"+f"(d[6]),"+f"(d[7]) : "r"(a0),"r"(a1),"r"(b0),"r"(b1));
 uint32_t h[4] = {1,2,3,4};
 asm volatile("mma.sync.aligned.m8n8k4.col.row.f16.f16.f16.f16 {%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%0,%1,%2,%3};" : "+r"(h[0]),"+r"(h[1]),"+r"(h[2]),"+r"(h[3]) : "r"(a0),"r"(a1),"r"(b0),"r"(b1));
 for (int i = 0; i < 8; ++i) out[t*8+i] = d[i]; for (int i = 0; i < 4; ++i) out[t*4+999+i] = h[i]; }
#endif
