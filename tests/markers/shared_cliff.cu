//@ target sm_86
// Just past the edge: 52,224 bytes of the block's own shared memory leave one block on an SM of 100 KB, at 50,176
// there would be two (floor(102400 / 2 / 128) * 128 - 1024 = 50,176). Just before it there is nothing to warn of
// unless little is left.

// kernel-lsp: block=128 smem=52224
__global__ void past(float* x) { //@ finding("KL110", "52,224 B", "1 block/SM", "50,176 B", at="past"), lens("1 block/SM", "4/48 warps"), hover("past", "shared", "<- limit")
    extern __shared__ float tile[];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[127 - threadIdx.x];
}

// kernel-lsp: block=128 smem=32768
__global__ void far_from_the_edge(float* x) { //@ lens("3 blocks/SM", "12/48 warps"), finding("KL101", "shared")
    extern __shared__ float tile[];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[127 - threadIdx.x];
}
