// Two stages of asynchronous copies: while one tile is summed, the next is on its way to shared memory.
// Before sm_80 the compiler turns the copies into ordinary loads and stores.

#include <cuda_pipeline.h>

constexpr int THREADS = 256;
constexpr int STAGES = 2;

__global__ void __launch_bounds__(THREADS) weighted_sum(float* out, const float4* x, const float4* w, int n_tiles)
{
    __shared__ float4 tile_x[STAGES][THREADS];
    __shared__ float4 tile_w[STAGES][THREADS];

    const int lane = threadIdx.x;
    const float4* my_x = x + (size_t)blockIdx.x * n_tiles * THREADS + lane;
    const float4* my_w = w + (size_t)blockIdx.x * n_tiles * THREADS + lane;

    auto fetch = [&](int tile, int stage) {
        __pipeline_memcpy_async(&tile_x[stage][lane], my_x + tile * THREADS, sizeof(float4));
        __pipeline_memcpy_async(&tile_w[stage][lane], my_w + tile * THREADS, sizeof(float4));
        __pipeline_commit();
    };

    float sum = 0.0f;
    fetch(0, 0);
    for (int tile = 0; tile < n_tiles; ++tile) {
        const int stage = tile % STAGES;
        if (tile + 1 < n_tiles) fetch(tile + 1, (tile + 1) % STAGES);
        __pipeline_wait_prior(tile + 1 < n_tiles ? 1 : 0);
        const float4 a = tile_x[stage][lane];
        const float4 b = tile_w[stage][lane];
        sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
    }
    out[blockIdx.x * THREADS + lane] = sum;
}

void launch_weighted_sum(float* out, const float4* x, const float4* w, int n_blocks, int n_tiles)
{
    weighted_sum<<<n_blocks, THREADS>>>(out, x, w, n_tiles);
}
