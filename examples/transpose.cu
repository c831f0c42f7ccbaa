// Two transposes through a shared tile. In the first, the threads of a warp read one column of the tile, and all 32
// of its elements lie in the same bank; a column of padding in the second spreads them over all banks.

constexpr int DIM = 32;
constexpr int ROWS = 8;

__global__ void transpose_conflicts(float* out, const float* in, int n)
{
    __shared__ float tile[DIM][DIM];
    const int x = blockIdx.x * DIM + threadIdx.x;
    const int y = blockIdx.y * DIM + threadIdx.y;
    for (int j = 0; j < DIM; j += ROWS)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    const int tx = blockIdx.y * DIM + threadIdx.x;
    const int ty = blockIdx.x * DIM + threadIdx.y;
    for (int j = 0; j < DIM; j += ROWS)
        out[(ty + j) * n + tx] = tile[threadIdx.x][threadIdx.y + j];
}

__global__ void transpose_padded(float* out, const float* in, int n)
{
    __shared__ float tile[DIM][DIM + 1];
    const int x = blockIdx.x * DIM + threadIdx.x;
    const int y = blockIdx.y * DIM + threadIdx.y;
    for (int j = 0; j < DIM; j += ROWS)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    const int tx = blockIdx.y * DIM + threadIdx.x;
    const int ty = blockIdx.x * DIM + threadIdx.y;
    for (int j = 0; j < DIM; j += ROWS)
        out[(ty + j) * n + tx] = tile[threadIdx.x][threadIdx.y + j];
}

void launch_transpose(float* out, const float* in, int n)
{
    const dim3 grid(n / DIM, n / DIM);
    transpose_conflicts<<<grid, dim3(DIM, ROWS)>>>(out, in, n);
    transpose_padded<<<grid, dim3(DIM, ROWS)>>>(out, in, n);
}
