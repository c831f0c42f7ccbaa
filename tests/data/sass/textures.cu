// Every kind of texture and surface access, by a handle that is a kernel's parameter and by one that is loaded.
#include <cstdint>
struct ByParam { cudaTextureObject_t t[16]; __device__ cudaTextureObject_t operator()(int i) const { return t[i]; } };
struct ByTable { const cudaTextureObject_t* t; __device__ cudaTextureObject_t operator()(int i) const { return t[threadIdx.x + i * 32]; } };
template<class T, class P> __global__ void x_all(P h, const float* c, T* o) {
  int i = threadIdx.x, k = i; float x = c[i], y = c[i + 32], z = c[i + 64], w = c[i + 96], l = c[i + 128]; int ix = (int)c[i + 160], a = (int)c[i + 224]; bool r;
  auto put = [&](T v) { o[k] = v; k += 32; }; float2 g = make_float2(z, w), e = make_float2(l, x); float4 gg = make_float4(z, w, x, y), ee = make_float4(l, x, y, z);
  put(tex1Dfetch<T>(h(0), ix)); put(tex1D<T>(h(1), x)); put(tex1DLod<T>(h(1), x, l)); put(tex1DGrad<T>(h(1), x, y, z));
  put(tex2D<T>(h(2), x, y)); put(tex2DLod<T>(h(2), x, y, l)); put(tex2DGrad<T>(h(2), x, y, g, e));
  put(tex3D<T>(h(3), x, y, z)); put(tex3DLod<T>(h(3), x, y, z, l)); put(tex3DGrad<T>(h(3), x, y, z, gg, ee));
  put(tex1DLayered<T>(h(4), x, a)); put(tex1DLayeredLod<T>(h(4), x, a, l)); put(tex1DLayeredGrad<T>(h(4), x, a, y, z));
  put(tex2DLayered<T>(h(5), x, y, a)); put(tex2DLayeredLod<T>(h(5), x, y, a, l)); put(tex2DLayeredGrad<T>(h(5), x, y, a, g, e));
  put(texCubemap<T>(h(6), x, y, z)); put(texCubemapLod<T>(h(6), x, y, z, l)); put(texCubemapGrad<T>(h(6), x, y, z, gg, ee));
  put(texCubemapLayered<T>(h(7), x, y, z, a)); put(texCubemapLayeredLod<T>(h(7), x, y, z, a, l)); put(texCubemapLayeredGrad<T>(h(7), x, y, z, a, gg, ee));
  put(tex2D<T>(h(8), x, y, &r)); k += r; put(tex3DLod<T>(h(9), x, y, z, l, &r)); k += r; put(tex2DLayeredGrad<T>(h(10), x, y, a, g, e, &r)); k += r; put(tex3D<T>(h(9), x, y, z, &r)); k += r; }
template __global__ void x_all(ByParam, const float*, float4*);
template __global__ void x_all(ByParam, const float*, short*);
template __global__ void x_all(ByTable, const float*, uint2*);
template __global__ void x_all(ByTable, const float*, int4*);
template<class P> __global__ void x_parts(P h, const float* c, float4* o) { int i = threadIdx.x; float x = c[i], y = c[i + 32]; bool r;
  o[i] = tex2Dgather<float4>(h(0), x, y, 0); o[i + 32] = tex2Dgather<float4>(h(1), x, y, 1); o[i + 64] = tex2Dgather<float4>(h(2), x, y, 2); o[i + 96] = tex2Dgather<float4>(h(3), x, y, &r, 3); if (r) o[4] = o[5];
  float4 v = tex2D<float4>(h(4), x, y); o[i + 128].x = v.w; v = tex2D<float4>(h(5), x, y); o[i + 160].x = v.z + v.y; v = tex3D<float4>(h(6), x, y, x); o[i + 192].y = v.x + v.z + v.w; v = tex3D<float4>(h(7), x, y, x); o[i + 224].z = v.x + v.y + v.w; }
template __global__ void x_parts(ByParam, const float*, float4*);
template __global__ void x_parts(ByTable, const float*, float4*);
template<class T, class S> __global__ void x_surface(S s, const int* c, T* o) { int i = threadIdx.x, x = c[i], y = c[i + 32], z = c[i + 64]; T v;
  surf1Dread(&v, s(0), x); o[i] = v; surf1Dwrite(v, s(0), y); surf2Dread(&v, s(1), x, y, cudaBoundaryModeClamp); o[i + 32] = v; surf2Dwrite(v, s(1), y, z, cudaBoundaryModeZero); surf3Dread(&v, s(2), x, y, z); o[i + 64] = v; surf3Dwrite(v, s(2), y, z, x);
  surf1DLayeredread(&v, s(3), x, z); o[i + 96] = v; surf1DLayeredwrite(v, s(3), y, z); surf2DLayeredread(&v, s(4), x, y, z); o[i + 128] = v; surf2DLayeredwrite(v, s(4), y, x, z); surfCubemapread(&v, s(5), x, y, z); o[i + 160] = v; surfCubemapwrite(v, s(5), y, x, z); }
template __global__ void x_surface<float4, ByParam>(ByParam, const int*, float4*);
template __global__ void x_surface<unsigned char, ByParam>(ByParam, const int*, unsigned char*);
template __global__ void x_surface<uint2, ByTable>(ByTable, const int*, uint2*);
#define V4 "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
#define AT(kind, n, ...) asm volatile("tex." kind " {%0,%1,%2,%3}," __VA_ARGS__); o[i + n] = v;
template<class P> __global__ void x_asm(P h, const float* c, float4* o, unsigned* q) { uint64_t t = h(0), s = h(1); int i = threadIdx.x; float x = c[i], y = c[i + 32], z = c[i + 64], l = c[i + 96]; int a = (int)l, b = (int)y; float4 v; unsigned p, r;
  AT("2d.v4.f32.f32", 0, "[%4,{%5,%6}],{%7,%8},%9;" : V4 : "l"(t), "f"(x), "f"(y), "r"(a), "r"(b), "f"(l)) AT("level.2d.v4.f32.f32", 32, "[%4,{%5,%6}],%7,{%8,%9},%10;" : V4 : "l"(t), "f"(x), "f"(y), "f"(z), "r"(a), "r"(b), "f"(l))
  AT("2d.v4.f32.f32", 64, "[%4,{%5,%6}],%7;" : V4 : "l"(t), "f"(x), "f"(y), "f"(l)) AT("grad.2d.v4.f32.f32", 96, "[%4,{%5,%6}],{%5,%7},{%6,%7},{%8,%9};" : V4 : "l"(t), "f"(x), "f"(y), "f"(z), "r"(a), "r"(b))
  AT("cube.v4.f32.f32", 128, "[%4,{%5,%6,%7,%7}],%8;" : V4 : "l"(t), "f"(x), "f"(y), "f"(z), "f"(l)) AT("acube.v4.f32.f32", 160, "[%4,{%9,%5,%6,%7}],%8;" : V4 : "l"(t), "f"(x), "f"(y), "f"(z), "f"(l), "r"(a))
  AT("a2d.v4.f32.f32", 192, "[%4,{%9,%5,%6,%7}],{%9,%9},%8;" : V4 : "l"(t), "f"(x), "f"(y), "f"(z), "f"(l), "r"(a)) AT("3d.v4.f32.f32", 224, "[%4,{%5,%6,%7,%7}],{%8,%8,%8,%8};" : V4 : "l"(t), "f"(x), "f"(y), "f"(z), "r"(a))
  AT("1d.v4.f32.s32", 256, "[%4,{%5}],{%5};" : V4 : "l"(t), "r"(a)) AT("2dms.v4.f32.s32", 288, "[%4,{%5,%6,%6,%6}];" : V4 : "l"(t), "r"(a), "r"(b)) AT("a2dms.v4.f32.s32", 320, "[%4,{%5,%6,%6,%6}];" : V4 : "l"(t), "r"(a), "r"(b)) AT("level.a2d.v4.f32.s32", 352, "[%4,{%5,%6,%6,%6}],%5,{%6,%5};" : V4 : "l"(t), "r"(a), "r"(b))
  asm volatile("tld4.r.2d.v4.f32.f32 {%0,%1,%2,%3},[%4,{%5,%6}],{%7,%8};" : V4 : "l"(t), "f"(x), "f"(y), "r"(a), "r"(b)); o[i + 384] = v; asm volatile("tld4.g.2d.v4.f32.f32 {%0,%1,%2,%3},[%4,{%5,%6}],%7;" : V4 : "l"(t), "f"(x), "f"(y), "f"(l)); o[i + 416] = v;
  asm volatile("tld4.a.a2d.v4.f32.f32 {%0,%1,%2,%3},[%4,{%7,%5,%6,%6}],{%7,%8},%9;" : V4 : "l"(t), "f"(x), "f"(y), "r"(a), "r"(b), "f"(l)); o[i + 448] = v; asm volatile("tld4.b.cube.v4.f32.f32 {%0,%1,%2,%3},[%4,{%5,%6,%7,%7}],%8;" : V4 : "l"(t), "f"(x), "f"(y), "f"(z), "f"(l)); o[i + 480] = v;
  asm volatile("tex.2d.v2.f16x2.f32 {%0,%1},[%2,{%3,%4}];" : "=r"(p), "=r"(r) : "l"(t), "f"(x), "f"(y)); q[i] = p; q[i + 32] = r; asm volatile("txq.width.b32 %0,[%1];" : "=r"(p) : "l"(t)); q[i + 64] = p; asm volatile("txq.level.height.b32 %0,[%1],%2;" : "=r"(p) : "l"(t), "r"(a)); q[i + 96] = p;
  asm volatile("sured.b.2d.add.u32.trap [%0,{%1,%2}],%1;" :: "l"(s), "r"(a), "r"(b)); asm volatile("sured.b.3d.min.s32.clamp [%0,{%1,%2,%2,%2}],%1;" :: "l"(s), "r"(a), "r"(b)); asm volatile("sured.b.1d.add.u64.zero [%0,{%1}],%2;" :: "l"(s), "r"(a), "l"((uint64_t)b)); asm volatile("sured.p.2d.or.b32.trap [%0,{%1,%2}],%1;" :: "l"(s), "r"(a), "r"(b));
  asm volatile("sust.p.2d.v4.b32.trap [%0,{%1,%2}],{%1,%2,%1,%2};" :: "l"(s), "r"(a), "r"(b)); asm volatile("sust.p.3d.v2.b32.trap [%0,{%1,%2,%2,%2}],{%1,%2};" :: "l"(s), "r"(a), "r"(b)); asm volatile("sust.p.a2d.b32.zero [%0,{%1,%2,%2,%2}],{%1};" :: "l"(s), "r"(a), "r"(b)); }
template __global__ void x_asm(ByParam, const float*, float4*, unsigned*);
template __global__ void x_asm(ByTable, const float*, float4*, unsigned*);
