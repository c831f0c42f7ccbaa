// A block-wide sum with warp shuffles. The block size is the caller's choice, so nothing here fixes it: the numbers
// are shown as a table over block sizes.

__inline__ __device__ float warp_sum(float value)
{
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_down_sync(0xffffffffu, value, offset);
    return value;
}

__global__ void block_sum(float* out, const float* in, int n)
{
    __shared__ float partial[32];
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i];

    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0.0f;
        sum = warp_sum(sum);
        if (threadIdx.x == 0) out[blockIdx.x] = sum;
    }
}

void launch_block_sum(float* out, const float* in, int n, int threads)
{
    block_sum<<<256, threads>>>(out, in, n);
}
