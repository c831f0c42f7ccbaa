// A warp computes a 64x64 piece of C with 16x16x16 tensor-core tiles. Registers hold the occupancy down, and that is
// right here: the accumulators are the reuse that makes the kernel fast.

#include <mma.h>

using namespace nvcuda;

constexpr int WARP_TILES = 4;
constexpr int WARPS = 4;

__global__ void __launch_bounds__(WARPS * 32) tensor_core_gemm(float* c, const half* a, const half* b, int n)
{
    const int warp = threadIdx.x / 32;
    const int row = (blockIdx.y * WARPS + warp) * 16 * WARP_TILES;
    const int col = blockIdx.x * 16 * WARP_TILES;

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc[WARP_TILES][WARP_TILES];
#pragma unroll
    for (int i = 0; i < WARP_TILES; ++i)
#pragma unroll
        for (int j = 0; j < WARP_TILES; ++j)
            wmma::fill_fragment(acc[i][j], 0.0f);

    for (int k = 0; k < n; k += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a_tile[WARP_TILES];
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b_tile[WARP_TILES];
#pragma unroll
        for (int i = 0; i < WARP_TILES; ++i) {
            wmma::load_matrix_sync(a_tile[i], a + (row + 16 * i) * n + k, n);
            wmma::load_matrix_sync(b_tile[i], b + k * n + col + 16 * i, n);
        }
#pragma unroll
        for (int i = 0; i < WARP_TILES; ++i)
#pragma unroll
            for (int j = 0; j < WARP_TILES; ++j)
                wmma::mma_sync(acc[i][j], a_tile[i], b_tile[j], acc[i][j]);
    }

#pragma unroll
    for (int i = 0; i < WARP_TILES; ++i)
#pragma unroll
        for (int j = 0; j < WARP_TILES; ++j)
            wmma::store_matrix_sync(c + (row + 16 * i) * n + col + 16 * j, acc[i][j], n, wmma::mem_row_major);
}

void launch_tensor_core_gemm(float* c, const half* a, const half* b, int n)
{
    const dim3 grid(n / (16 * WARP_TILES), n / (16 * WARP_TILES * WARPS));
    tensor_core_gemm<<<grid, WARPS * 32>>>(c, a, b, n);
}
