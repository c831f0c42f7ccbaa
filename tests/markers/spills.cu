//@ target sm_86
// 64 live values in the 32 registers that a bound of two blocks of 1024 threads would leave; sm_86 holds one such
// block, so the bound is on 1024 threads and 64 registers.

__global__ void __launch_bounds__(1024) crowded(const float* x, float* y, int n) { //@ finding("KL201", "spill stores", "64 registers", "__launch_bounds__(1024)", at="crowded"), hover("crowded", "`__launch_bounds__(1024)`"), finding("KL101")
    float v[64];  //@ hint(), line_hover()
#pragma unroll
    for (int i = 0; i < 64; i++) v[i] = x[threadIdx.x + i * n];  //@ hint("spill stores"), line_hover("64 LDG.E", "Spilled registers: ", "STL")
    for (int k = 0; k < n; k++) {
#pragma unroll
        for (int i = 0; i < 64; i++) v[i] = v[i] * v[(i * 7 + 3) % 64] + v[(i + 13) % 64];  //@ line_hover("64 FFMA", "loop depth 1")
    }
#pragma unroll
    for (int i = 0; i < 64; i++) y[threadIdx.x + i * n] = v[i];
}
