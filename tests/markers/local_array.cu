//@ target sm_86
// A small array that is read with a run-time index again and again: local memory, but no spill, and no advice about
// registers. With constant indices the same array stays in registers.

__global__ void __launch_bounds__(256) pick(const float* x, const int* which, float* y, int n) { //@ lens("local")
    float table[32];
#pragma unroll
    for (int k = 0; k < 32; ++k) table[k] = x[k * n + threadIdx.x];
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) sum += table[which[k] & 31]; //@ finding("KL204", "table[]", "run-time index", "128 B", "0 spills", at="table")
    y[threadIdx.x] = sum;
}

__global__ void __launch_bounds__(256) fixed(const float* x, float* y, int n) { //@ lens("6 blocks/SM")
    float table[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) table[k] = x[k * n + threadIdx.x];
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) sum += table[(k * 3) & 7];
    y[threadIdx.x] = sum;
}
