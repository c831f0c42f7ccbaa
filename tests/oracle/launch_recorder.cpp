// Stands in for the CUDA runtime: every launch prints its grid, block and shared memory instead of running.
#include <cstddef>
#include <cstdio>

struct Extents { unsigned x, y, z; };

static void print(const Extents &grid, const Extents &block, size_t shared) {
  std::printf("%u %u %u %u %u %u %zu\n", grid.x, grid.y, grid.z, block.x, block.y, block.z, shared);
}

extern "C" {
unsigned __cudaPushCallConfiguration(Extents grid, Extents block, size_t shared, void *) {
  print(grid, block, shared);
  return 1;  // refused: the kernel's stub is not called
}
int __cudaPopCallConfiguration(Extents *, Extents *, size_t *, void *) { return 1; }
int cudaLaunchKernel(const void *, Extents grid, Extents block, void **, size_t shared, void *) {
  print(grid, block, shared);
  return 0;
}
int cudaLaunchCooperativeKernel(const void *, Extents grid, Extents block, void **, size_t shared, void *) {
  print(grid, block, shared);
  return 0;
}
struct Config { Extents grid, block; size_t shared; };  // the first fields of cudaLaunchConfig_t
int cudaLaunchKernelExC(const Config *config, const void *, void **) {
  print(config->grid, config->block, config->shared);
  return 0;
}
void **__cudaRegisterFatBinary(void *) { return nullptr; }
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *) {}
char __cudaInitModule(void **) { return 0; }
int __cudaGetKernel(void **, const void *) { return 0; }
int __cudaLaunchKernel(void *, Extents grid, Extents block, void **, size_t shared, void *) {
  print(grid, block, shared);
  return 0;
}
}
