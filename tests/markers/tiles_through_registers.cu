//@ target sm_86
// One FFMA for two loads that only go to shared memory: asynchronous copies would pay. The second kernel copies
// asynchronously already; the third has enough to do for each load.

#include <cuda_pipeline.h>

__global__ void __launch_bounds__(256) thin(const float* a, const float* b, float* c, int n) { //@ hover("thin", "1 FFMA per 2 global loads", "0.5 : 1, low", "cp.async would pay (estimated)")
    __shared__ float tile_a[256], tile_b[256];
    float sum = 0.0f;
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        tile_a[threadIdx.x] = a[i * 256 + threadIdx.x]; //@ finding("KL402", "would pay here (estimated)", "0.5 FFMA per load", "l.12 and l.13"), line_hover("1 LDG.E  1 STS", "Waits for LDG.E of this line", "loop depth 1")
        tile_b[threadIdx.x] = b[i * 256 + threadIdx.x];
        __syncthreads(); //@ line_hover("1 BAR.SYNC")
        sum += tile_a[255 - threadIdx.x] * tile_b[threadIdx.x ^ 7]; //@ line_hover("1 FFMA", "2 LDS", "Waits for LDS of this line")
        __syncthreads();
    }
    c[threadIdx.x] = sum;
}

__global__ void __launch_bounds__(256) copied(const float4* a, float4* c, int n) { //@ hover("copied", "copies asynchronously already")
    __shared__ float4 tile[256];
    float4 sum = {};
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        __pipeline_memcpy_async(&tile[threadIdx.x], &a[i * 256 + threadIdx.x], 16); //@ line_hover("LDGSTS", "inlined  cuda_pipeline_helpers.h:")
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        float4 v = tile[255 - threadIdx.x];
        sum.x += v.x * v.y;
        __syncthreads();
    }
    c[threadIdx.x] = sum;
}

__global__ void __launch_bounds__(256) busy(const float* a, float* c, int n) { //@ hover("busy", "high", "would not pay")
    __shared__ float tile[256];
    float sum = 0.0f;
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        tile[threadIdx.x] = a[i * 256 + threadIdx.x];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; k++) sum += tile[k] * tile[k + 32];
        __syncthreads();
    }
    c[threadIdx.x] = sum;
}
