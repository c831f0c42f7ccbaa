/* Asks NVIDIA's cuda_occupancy.h about launches, one a line of whole numbers:
 *   major minor threads_sm registers_block registers_sm shared_block shared_sm shared_optin shared_reserved
 *   threads registers static dynamic carveout barriers most_dynamic
 * most_dynamic -1: the program opted in to what it launches with. Answers a line each: "error N", or
 *   blocks factors(bits) warps registers shared blocks barriers registers_allocated shared_allocated
 * with -1 for a limit that is none.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <cuda_occupancy.h>

static int shown(int limit) { return limit == INT_MAX ? -1 : limit; }

int main(void) {
  long long v[16];
  for (;;) {
    for (int i = 0; i < 16; ++i)
      if (scanf("%lld", &v[i]) != 1) return i == 0 ? 0 : 2;
    cudaOccDeviceProp device;
    cudaOccFuncAttributes kernel;
    cudaOccDeviceState state;
    cudaOccResult result;
    memset(&device, 0, sizeof device);
    memset(&kernel, 0, sizeof kernel);
    memset(&state, 0, sizeof state);
    memset(&result, 0, sizeof result);
    device.computeMajor = (int)v[0];
    device.computeMinor = (int)v[1];
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = (int)v[2];
    device.regsPerBlock = (int)v[3];
    device.regsPerMultiprocessor = (int)v[4];
    device.warpSize = 32;
    device.sharedMemPerBlock = (size_t)v[5];
    device.sharedMemPerMultiprocessor = (size_t)v[6];
    device.numSms = 1;
    device.sharedMemPerBlockOptin = (size_t)v[7];
    device.reservedSharedMemPerBlock = (size_t)v[8];
    long long most_dynamic = v[15];
    if (most_dynamic < 0) {
      most_dynamic = v[5] > v[11] ? v[5] - v[11] : 0;
      if (v[12] > most_dynamic) most_dynamic = v[12];
    }
    kernel.maxThreadsPerBlock = INT_MAX;
    kernel.numRegs = (int)v[10];
    kernel.sharedSizeBytes = (size_t)v[11];
    kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = (size_t)most_dynamic;
    kernel.numBlockBarriers = (int)v[14];
    state.cacheConfig = CACHE_PREFER_NONE;
    state.carveoutConfig = (int)v[13];
    cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, (int)v[9],
                                                                 (size_t)v[12]);
    if (error != CUDA_OCC_SUCCESS) {
      printf("error %d\n", (int)error);
      continue;
    }
    printf("%d %u %d %d %d %d %d %d %zu\n", result.activeBlocksPerMultiprocessor, result.limitingFactors,
           shown(result.blockLimitWarps), shown(result.blockLimitRegs), shown(result.blockLimitSharedMem),
           shown(result.blockLimitBlocks), shown(result.blockLimitBarriers), result.allocatedRegistersPerBlock,
           result.allocatedSharedMemPerBlock);
  }
}
