//@ target sm_86
// No bound, no launch, no comment: a table over block sizes and no single number.

__global__ void anywhere(float* x, int n) { //@ lens("block size unknown", "256 -> 6"), hover("anywhere", "Block size unknown", "threads  blocks/SM")
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2.0f;
}
