// A block of 128 threads keeps 51 KB of tiles in dynamic shared memory. On an RTX 3070 Ti that is 2 KB too much for
// two blocks per SM: occupancy halves at 50,176 bytes.

constexpr int THREADS = 128;
constexpr int TILE_FLOATS = 13056;  // 52,224 bytes

__global__ void __launch_bounds__(THREADS) smooth(float* out, const float* in, int n)
{
    extern __shared__ float tile[];
    const float* src = in + (size_t)blockIdx.x * TILE_FLOATS;
    for (int i = threadIdx.x; i < TILE_FLOATS; i += THREADS)
        tile[i] = src[i];
    __syncthreads();
    for (int i = threadIdx.x; i < TILE_FLOATS; i += THREADS) {
        const float left = tile[i > 0 ? i - 1 : 0];
        const float right = tile[i + 1 < TILE_FLOATS ? i + 1 : i];
        out[(size_t)blockIdx.x * TILE_FLOATS + i] = 0.25f * left + 0.5f * tile[i] + 0.25f * right;
    }
}

void launch_smooth(float* out, const float* in, int n_blocks)
{
    constexpr int bytes = TILE_FLOATS * sizeof(float);
    cudaFuncSetAttribute(smooth, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    smooth<<<n_blocks, THREADS, bytes>>>(out, in, n_blocks);
}
