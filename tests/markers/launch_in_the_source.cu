//@ target sm_86
// The block comes from the launch, through a macro and a constexpr; 1024 threads fit once on 48 warps.

#define WIDE 1024
constexpr int NARROW = 64;

__global__ void copy(float* x, const float* y) { //@ finding("KL101", "1024", "32 of 48 warps", at="copy"), lens("1 block/SM", "worst of 2 launches")
    x[blockIdx.x * blockDim.x + threadIdx.x] = y[blockIdx.x * blockDim.x + threadIdx.x];
}

void launch(float* x, const float* y) {
    copy<<<16, WIDE>>>(x, y);
    copy<<<16, dim3(NARROW * 2, 2)>>>(x, y);
}
