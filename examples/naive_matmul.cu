// One thread per element of C, every operand straight from global memory: two loads for each multiply-add.
// The caches serve most of them, but each thread asks for 8 bytes per 2 FLOP.

__global__ void naive_matmul(float* c, const float* a, const float* b, int n)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n || col >= n) return;

    float sum = 0.0f;
    for (int k = 0; k < n; ++k)
        sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}

void launch_naive_matmul(float* c, const float* a, const float* b, int n)
{
    const dim3 block(16, 16);
    const dim3 grid((n + 15) / 16, (n + 15) / 16);
    naive_matmul<<<grid, block>>>(c, a, b, n);
}
