"""Launches whose extents the text decides: name -> (before, statements of a host function, (grid, block, shared)).

The grid is None where it depends on something at run time. Compiled and run against NVIDIA's compiler by an oracle.
"""

from __future__ import annotations


def block(x: int, y: int = 1, z: int = 1, shared: int = 0) -> tuple[object, ...]:
    return (1, 1, 1), (x, y, z), shared


DIV_UP = "#define DIV_UP(a, b) (((a) + (b) - 1) / (b))"
CONFIG = "cudaLaunchConfig_t c = {0}; c.gridDim = 1; c.blockDim = dim3(64, 2); c.dynamicSmemBytes = 2048;"
IN_CLASS = "struct C { static constexpr unsigned kThreads = 96; };"

KNOWN = {
    "literals": ("", "f<<<64, 256>>>(p);", ((64, 1, 1), (256, 1, 1), 0)),
    "shared and stream": ("", "f<<<n, 256, 48 * 1024, stream>>>(p);", (None, (256, 1, 1), 49152)),
    "dim3 temporaries": ("", "f<<<dim3(n, 2), dim3(16, 16)>>>(p);", (None, (16, 16, 1), 0)),
    "dim3 braces": ("", "f<<<dim3{8}, dim3{32, 4, 2}>>>(p);", ((8, 1, 1), (32, 4, 2), 0)),
    "dim3 variable": ("", "dim3 b(16, 8); f<<<1, b>>>(p);", block(16, 8)),
    "dim3 by assignment": ("", "const dim3 b = dim3(16, 8), g = {1}; f<<<g, b>>>(p);", block(16, 8)),
    "dim3 by auto": ("", "auto b = dim3{16, 8}; f<<<1, b>>>(p);", block(16, 8)),
    "dim3 of an int": ("", "dim3 b = 128; f<<<1, b>>>(p);", block(128)),
    "macro": ("#define TILE 16", "f<<<1, dim3(TILE, TILE * 2)>>>(p);", block(16, 32)),
    "macro is text, not a value": ("#define N 8 + 8", "f<<<1, N * 2>>>(p);", block(24)),
    "macro of a macro": ("#define A 4\n#define B (A * A)", "f<<<1, B << 3>>>(p);", block(128)),
    "macro of a dim3": ("#define BLOCK dim3(8, 8)", "f<<<1, BLOCK>>>(p);", block(8, 8)),
    "function macro": (DIV_UP, "f<<<DIV_UP(1000, 256), 256>>>(p);", ((4, 1, 1), (256, 1, 1), 0)),
    "constexpr": ("constexpr int N = 0x40;", "f<<<1, N * 2u>>>(p);", block(128)),
    "static constant of a class": (IN_CLASS, "f<<<1, C::kThreads>>>(p);", block(96)),
    "of a namespace": ("namespace cfg { const int t = 64; }", "f<<<1, cfg::t>>>(p);", block(64)),
    "of an anonymous namespace": ("namespace { constexpr int t = 64; }", "f<<<1, t>>>(p);", block(64)),
    "enumerator": ("enum { A, B = 31, THREADS };", "f<<<A + 1, THREADS>>>(p);", block(32)),
    "local, never changed": ("", "int t = 256; int m = 2 * t; f<<<div_up(m, t), t>>>(p);", (None, (256, 1, 1), 0)),
    "local, read by printf": ("", 'int t = 256; fprintf(stderr, "%d", t); f<<<1, t>>>(p);', block(256)),
    "local, given by value": ("int up(int a) { return a; }", "int t = 64; up(t); f<<<1, t>>>(p);", block(64)),
    "shadowed further in": ("", "int t = 64; { int t = 32; } f<<<1, t>>>(p);", block(64)),
    "shadows further out": ("constexpr int t = 512;", "const int t = 64; f<<<1, t>>>(p);", block(64)),
    "product before a name": ("", "const int t = 64; g(a * b, t); f<<<1, t>>>(p);", block(64)),
    "sizeof": ("", "f<<<1, 32, 3 * sizeof(float4) + sizeof(half) * 2>>>(p);", block(32, shared=52)),
    "sizeof of an alias": ("using real = double;", "f<<<1, 32, 4 * sizeof(real)>>>(p);", block(32, shared=32)),
    "sizeof of a pointer": ("", "f<<<1, 32, 4 * sizeof(float*)>>>(p);", block(32, shared=32)),
    "size variable": ("", "dim3 b(32, 4); size_t s = b.x * b.y * 4; f<<<1, b, s>>>(p);", block(32, 4, shared=512)),
    "casts": ("", "f<<<1, (unsigned)64, static_cast<size_t>(16)>>>(p);", block(64, shared=16)),
    "conditional constant": ("constexpr int t = 3;", "f<<<1, t > 2 ? 64 : 32>>>(p);", block(64)),
    "min and max": ("", "f<<<1, std::min(256, 128), max(4, 8)>>>(p);", block(128, shared=8)),
    "cudaLaunchKernel": ("", "cudaLaunchKernel((void*)f, dim3(1), dim3(64, 2), args, 1024);", block(64, 2, 1, 1024)),
    "cooperative": ("", "cudaLaunchCooperativeKernel(&f, 1, 128, args);", block(128)),
    "cudaLaunchKernelEx": ("", f"{CONFIG} cudaLaunchKernelEx(&c, f, p);", block(64, 2, 1, 2048)),
    "parentheses around the kernel": ("", "(f)<<<1, 32>>>(p);", block(32)),
    "kernel in an auto variable": ("", "auto k = &f; k<<<1, 32>>>(p);", block(32)),
}
