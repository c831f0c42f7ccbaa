// The same product through shared memory. TILE decides everything: reuse, shared memory and threads per block.

template <int TILE>
__global__ void tiled(float* c, const float* a, const float* b, int n)
{
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];

    int row = blockIdx.y * TILE + threadIdx.y;
    int col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (int k0 = 0; k0 < n; k0 += TILE) {
        tile_a[threadIdx.y][threadIdx.x] = a[row * n + k0 + threadIdx.x];
        tile_b[threadIdx.y][threadIdx.x] = b[(k0 + threadIdx.y) * n + col];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; ++k)
            sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + col] = sum;
}

void launch_tiled(float* c, const float* a, const float* b, int n)
{
    tiled<16><<<dim3(n / 16, n / 16), dim3(16, 16)>>>(c, a, b, n);
    tiled<32><<<dim3(n / 32, n / 32), dim3(32, 32)>>>(c, a, b, n);
}
