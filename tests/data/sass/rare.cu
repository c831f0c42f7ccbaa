// Instructions that few kernels have: each was once decoded wrongly.
#include <cstdint>
#include "textures.cu"
#define SH(x) (uint32_t)__cvta_generic_to_shared(x)
__global__ void r_match(const uint64_t* a, uint32_t* o, int n) { int i = threadIdx.x, p; uint64_t x = a[i]; o[i] = __match_any_sync(n, x); o[i + 32] = __match_all_sync(~0u, x + 1, &p) + p; }
__global__ void r_convert(const int* a, const uint64_t* u, int* o, short* s) { int i = threadIdx.x, r; short h; asm("cvt.sat.u8.s32 %0, %1;" : "=r"(r) : "r"(a[i])); o[i] = r; asm("cvt.sat.s16.s32 %0, %1;" : "=h"(h) : "r"(a[i + 32])); s[i] = h; asm volatile("pmevent 7;"); }
__global__ void r_minmax(const long long* a, const unsigned long long* b, long long* o, unsigned long long* p) { int i = threadIdx.x; o[i] = min(a[i], a[i + 32]); o[i + 64] = max(a[i + 96], o[i + 128]); p[i] = min(b[i], b[i + 32]); p[i + 64] = max(b[i + 96], p[i + 128]); }
#ifdef TC
__global__ void r_half(const uint16_t* h, const float* f, float* o) { int i = threadIdx.x; float x, y; asm("add.rn.f32.f16 %0, %1, %2;" : "=f"(x) : "h"(h[i]), "f"(f[i])); asm("fma.rn.f32.bf16 %0, %1, %2, %3;" : "=f"(y) : "h"(h[i + 32]), "h"(h[i + 64]), "f"(f[i + 32])); o[i] = x; o[i + 32] = y; }
#define M(text) "{.reg .pred p; setp.ne.b32 p, %4, 0;\n" text "}" :: "r"(a), "l"(da), "l"(db), "r"(id), "r"(n)
__global__ void r_lanes(uint32_t a, uint64_t da, uint64_t db, uint32_t id, int n, const uint4* k) { uint4 m = k[0], w = k[1];
  asm volatile(M("tcgen05.mma.cta_group::2.kind::tf32 [%0], %1, %2, %3, {%5,%6,%7,%8,%9,%10,%11,%12}, p;"), "r"(m.x), "r"(m.y), "r"(m.z), "r"(m.w), "r"(w.x), "r"(w.y), "r"(w.z), "r"(w.w));
}
__global__ void r_single(uint32_t a, uint64_t da, uint64_t db, uint32_t id, int n, const uint4* k) { uint4 m = k[0]; uint64_t z = db + 7;
  asm volatile(M("tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, {%5,%6,%7,%8}, p;"), "r"(m.x), "r"(m.y), "r"(m.z), "r"(m.w));
  asm volatile(M("tcgen05.mma.ws.cta_group::1.kind::f16.collector::b2::fill [%0], %1, %2, %3, p, %5;"), "l"(z)); asm volatile(M("tcgen05.mma.ws.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3, p;")); }
#endif
#if defined(TC) || defined(M120)
__global__ void r_ldsm8(uint32_t* o) { __shared__ alignas(128) uint32_t s[512]; int t = threadIdx.x; s[t] = o[t]; __syncthreads(); uint32_t a, b, c, d, e, f;
  asm volatile("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%0,%1}, [%2];" : "=r"(a), "=r"(b) : "r"(SH(s))); asm volatile("ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8x16.b4x16_p64 {%0,%1,%2,%3}, [%4];" : "=r"(c), "=r"(d), "=r"(e), "=r"(f) : "r"(SH(s + t))); o[t] = a + b + c + d + e + f;
  asm volatile("ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b6x16_p32 {%0,%1}, [%2];" : "=r"(a), "=r"(b) : "r"(SH(s))); asm volatile("stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 [%0], {%1,%2};" :: "r"(SH(s)), "r"(a), "r"(b)); }
#endif
#ifdef M120
__global__ void r_scaled_sparse(const uint32_t* in, float* o) { int t = threadIdx.x; float d[4] = {}; const uint32_t* a = in + t * 16;
#define OPERANDS " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0, {%13}, {0,1}, {%14}, {0,1};" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), "r"(a[8]), "r"(a[9]), "r"(a[10])
  asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3" OPERANDS); asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0" OPERANDS);
  o[t] = d[0] + d[1] + d[2] + d[3]; }
#endif
