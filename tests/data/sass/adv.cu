#include <cstdint>
#include <cuda.h>
#define S(x) (uint32_t)__cvta_generic_to_shared(x)
__global__ void __cluster_dims__(2,1,1) a_tma(const __grid_constant__ CUtensorMap m, float* g, float* o, int n) {
  extern __shared__ float s[]; __shared__ uint64_t bar; __shared__ uint64_t bar2; int t = threadIdx.x;
  if (t == 0) { asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" :: "r"(S(&bar))); asm volatile("prefetch.tensormap [%0];" :: "l"(&m)); }
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;");
  if (t == 0) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(S(&bar)), "r"(n));
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" :: "r"(S(s)), "l"(&m), "r"(n), "r"(t), "r"(S(&bar)) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(S(s + 1024)), "l"(g), "r"(n * 16), "r"(S(&bar)) : "memory");
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" :: "l"(g + 64), "r"(n * 16));
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];" :: "l"(&m), "r"(n), "r"(n + 1)); }
  for (int k = 0; k < n; ++k) { asm volatile("{\n.reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra W;\n}" :: "r"(S(&bar)), "r"(k & 1)); o[t + k] = s[t + k] * s[t]; }
  uint64_t st; asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(st) : "r"(S(&bar2))); o[99] = st;
  asm volatile("fence.proxy.async.shared::cta;");
  if (t == 0) { asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" :: "l"(&m), "r"(n), "r"(n + 4), "r"(S(s))); asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%1, %2}], [%3];" :: "l"(&m), "r"(n), "r"(n + 5), "r"(S(s)));
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(o), "r"(S(s)), "r"(n * 16)); asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" :: "l"(o), "r"(S(s)), "r"(n * 16));
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;"); }
  uint32_t ra; asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(ra) : "r"(S(s + t)), "r"(1)); float rv; asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(rv) : "r"(ra)); o[t + 7] = rv;
  uint32_t rb; asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(rb) : "r"(S(&bar)), "r"(1)); asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" :: "r"(ra), "r"(n), "r"(rb)); asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [%0], %1, [%2];" :: "r"(ra), "r"(n), "r"(rb));
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(rb));
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" :: "r"(S(s + t)), "r"(n), "r"(t), "r"(t + n), "r"(t * n)); asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1,%2};" :: "r"(S(s + t)), "r"(n), "r"(t));
  asm volatile("griddepcontrol.wait;\ngriddepcontrol.launch_dependents;"); uint32_t e; asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(e)); o[t + 11] = e;
  float4 mm; asm volatile("multimem.ld_reduce.global.add.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(mm.x), "=f"(mm.y), "=f"(mm.z), "=f"(mm.w) : "l"(g)); asm volatile("multimem.st.global.v4.f32 [%0], {%1,%2,%3,%4};" :: "l"(g + 8), "f"(mm.y), "f"(mm.x), "f"(mm.z), "f"(mm.w)); asm volatile("red.global.add.v4.f32 [%0], {%1,%2,%3,%4};" :: "l"(g + 8), "f"(mm.y), "f"(mm.x), "f"(mm.z), "f"(mm.w));
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(S(&bar))); asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(S(&bar2)));
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;"); asm volatile("bar.sync 3, 128;\nbar.arrive 4, 64;"); asm volatile("bar.sync %0, 128;" :: "r"(n & 7)); asm volatile("bar.sync %0, %1;" :: "r"(n & 7), "r"((n + 1) * 32)); }
#ifdef WG
__global__ void __launch_bounds__(384) a_wgmma(float* o, uint64_t da, uint64_t db, int n, const uint32_t* in) { float d[8] = {}; int t = threadIdx.x; if (t < 128) { asm volatile("setmaxnreg.dec.sync.aligned.u32 40;"); o[t] = 1; } else { asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  for (int k = 0; k < n; ++k) { asm volatile("wgmma.fence.sync.aligned;"); asm volatile("{.reg .pred p; setp.ne.b32 p, %6, 0;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, p, 1, 1, 0, 0;}" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(da + k), "l"(db + k), "r"(k));
   asm volatile("{.reg .pred p; setp.ne.b32 p, %9, 0;\nwgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, p, 1, 1;}" : "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]) : "r"(in[t]), "r"(in[t+1]), "r"(in[t+2]), "r"(in[t+3]), "l"(db + k), "r"(k)); 
   asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) , "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]) :: "memory"); }
  int q[4] = {1,2,3,4}; asm volatile("wgmma.fence.sync.aligned;"); asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%0,%1,%2,%3}, %4, %5, 1;" : "+r"(q[0]), "+r"(q[1]), "+r"(q[2]), "+r"(q[3]) : "l"(da), "l"(db)); uint32_t h[2] = {3,4}; asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0,%1}, %2, %3, 1, 1, 1, 0, 1;" : "+r"(h[0]), "+r"(h[1]) : "l"(da), "l"(db)); asm volatile("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%0,%1,%2,%3}, %4, %5, 1, 1, 1;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(da), "l"(db)); asm volatile("wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {%0,%1,%2,%3}, %4, %5, 1;" : "+r"(q[0]), "+r"(q[1]), "+r"(q[2]), "+r"(q[3]) : "l"(da), "l"(db));
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  o[t] = d[0] + d[1] + d[2] + d[3] + d[4] + d[5] + d[6] + d[7] + q[0] + q[1] + q[2] + q[3] + h[0] + h[1]; } }
#endif
#ifdef TC
__global__ void a_tc(float* o, uint64_t da, uint64_t db, uint32_t id, int n, float4* big) { __shared__ uint32_t ta; __shared__ uint64_t bar; int t = threadIdx.x;
  if (t < 32) { asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 128;" :: "r"(S(&ta))); asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"); } __syncthreads(); uint32_t a = ta;
  if (t == 0) { for (int k = 0; k < n; ++k) { asm volatile("{.reg .pred p; setp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;}" :: "r"(a), "l"(da + k), "l"(db + k), "r"(id), "r"(k)); }
   asm volatile("{.reg .pred p; setp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3, p;}" :: "r"(a), "l"(da), "l"(db), "r"(id), "r"(n)); asm volatile("{.reg .pred p; setp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::tf32 [%0], [%1], %2, %3, p;}" :: "r"(a), "r"(a + 64), "l"(db), "r"(id), "r"(n)); asm volatile("{.reg .pred p; setp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::i8 [%0], %1, %2, %3, p;}" :: "r"(a), "l"(da), "l"(db), "r"(id), "r"(n));
   asm volatile("{.reg .pred p; setp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::mxf4.block_scale.block32 [%0], %1, %2, %3, [%5], [%6], p;}" :: "r"(a), "l"(da), "l"(db), "r"(id), "r"(n), "r"(a + 32), "r"(a + 48)); asm volatile("{.reg .pred p; setp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%0], %1, %2, %3, [%5], [%6], p;}" :: "r"(a), "l"(da), "l"(db), "r"(id), "r"(n), "r"(a + 32), "r"(a + 48));
   asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" :: "r"(a), "l"(da)); asm volatile("tcgen05.shift.cta_group::1.down [%0];" :: "r"(a)); asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" :: "r"(S(&bar))); }
  uint32_t r[8], q[4]; asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]) : "r"(a)); asm volatile("tcgen05.ld.sync.aligned.16x256b.x1.b32 {%0,%1,%2,%3}, [%4];\ntcgen05.wait::ld.sync.aligned;" : "=r"(q[0]), "=r"(q[1]), "=r"(q[2]), "=r"(q[3]) : "r"(a + 16)); asm volatile("tcgen05.st.sync.aligned.32x32b.x2.b32 [%0], {%1,%2};\ntcgen05.wait::st.sync.aligned;" :: "r"(a), "r"(r[0]), "r"(r[1])); asm volatile("tcgen05.st.sync.aligned.16x128b.x1.b32 [%0], {%1,%2};\ntcgen05.wait::st.sync.aligned;" :: "r"(a), "r"(r[0]), "r"(r[1]));
  o[t] = r[0] + r[1] + r[2] + r[3] + r[4] + r[5] + r[6] + r[7] + q[0] + q[1] + q[2] + q[3];
  uint64_t x = da, y = db, z = id; asm volatile("fma.rn.f32x2 %0, %1, %2, %0;\nadd.rn.f32x2 %0, %0, %1;\nmul.rn.f32x2 %0, %0, %2;" : "+l"(x) : "l"(y), "l"(z)); o[t + 1] = x; 
  float u0,u1,u2,u3,u4,u5,u6,u7; asm volatile("ld.global.v8.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8];" : "=f"(u0), "=f"(u1), "=f"(u2), "=f"(u3), "=f"(u4), "=f"(u5), "=f"(u6), "=f"(u7) : "l"(big + t * 2)); asm volatile("st.global.v8.f32 [%8], {%0,%1,%2,%3,%4,%5,%6,%7};" :: "f"(u7), "f"(u1), "f"(u2), "f"(u3), "f"(u4), "f"(u5), "f"(u6), "f"(u0), "l"(big + t * 2 + 100));
  __syncthreads(); if (t < 32) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 128;" :: "r"(a));
  __shared__ uint64_t resp[2]; asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" :: "r"(S(resp)), "r"(S(&bar))); }
#endif
#ifdef WG
__global__ void a_wgsp(uint64_t da, uint64_t db, float* out, const uint32_t* in) { int t = threadIdx.x; float d[4]={}; uint32_t e = in[t], a[4]={in[t+1],in[t+2],in[t+3],in[t+4]};
 asm volatile("wgmma.fence.sync.aligned;");
 asm volatile("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, %6, 0, 1, 1, 1, 0, 0;" : "+f"(d[0]),"+f"(d[1]),"+f"(d[2]),"+f"(d[3]) : "l"(da),"l"(db),"r"(e));
 asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;");
 asm volatile("wgmma.fence.sync.aligned;");
 asm volatile("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16 {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, %9, 0, 1, 1, 1, 0;" : "+f"(d[0]),"+f"(d[1]),"+f"(d[2]),"+f"(d[3]) : "r"(a[0]),"r"(a[1]),"r"(a[2]),"r"(a[3]),"l"(db),"r"(e));
 asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;");
 int q[4]={};
 asm volatile("wgmma.fence.sync.aligned;");
 asm volatile("wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.s8.s8 {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, %9, 0, 1;" : "+r"(q[0]),"+r"(q[1]),"+r"(q[2]),"+r"(q[3]) : "r"(a[0]),"r"(a[1]),"r"(a[2]),"r"(a[3]),"l"(db),"r"(e));
 asm volatile("wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e4m3 {%0,%1,%2,%3}, %4, %5, %6, 0, 1, 1, 1;" : "+f"(d[0]),"+f"(d[1]),"+f"(d[2]),"+f"(d[3]) : "l"(da),"l"(db),"r"(e));
 asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;");
 for (int i = 0; i < 4; ++i) out[t*4+i] = d[i]+q[i]; }
#endif
#ifdef TC
__global__ void a_gather(const __grid_constant__ CUtensorMap m, int* n) { extern __shared__ float s[]; __shared__ uint64_t bar; uint32_t sa=(uint32_t)__cvta_generic_to_shared(s), sb=(uint32_t)__cvta_generic_to_shared(&bar);
 asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%0], [%1, {%2,%3,%4,%5,%6}], [%7];" :: "r"(sa),"l"(&m),"r"(n[0]),"r"(n[1]),"r"(n[2]),"r"(n[3]),"r"(n[4]),"r"(sb):"memory");
 asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%0, {%1,%2,%3,%4,%5}], [%6];" :: "l"(&m),"r"(n[5]),"r"(n[6]),"r"(n[7]),"r"(n[8]),"r"(n[9]),"r"(sa):"memory");
 asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%0, {%1,%2,%3,%4,%5}];" :: "l"(&m),"r"(n[10]),"r"(n[11]),"r"(n[12]),"r"(n[13]),"r"(n[14]):"memory"); }
__global__ void a_im2col(const __grid_constant__ CUtensorMap m, int* n) { extern __shared__ float s[]; __shared__ uint64_t bar; uint32_t sa=(uint32_t)__cvta_generic_to_shared(s), sb=(uint32_t)__cvta_generic_to_shared(&bar); uint16_t o=n[9];
 asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2,%3,%4,%5}], [%6], {%7,%8};" :: "r"(sa),"l"(&m),"r"(n[0]),"r"(n[1]),"r"(n[2]),"r"(n[3]),"r"(sb),"h"(o),"h"(o):"memory"); }
#endif
