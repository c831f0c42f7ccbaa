//@ target sm_86
// Full occupancy, no spills: nothing to find, and nothing is said but the lens.

__global__ void __launch_bounds__(256) scale(float* x, float f, int n) { //@ lens("6 blocks/SM", "48/48 warps")
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= f;
}
