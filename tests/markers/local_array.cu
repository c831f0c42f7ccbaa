//@ target sm_86
// A small array with a run-time index: local memory, but no spill, and no advice about registers.

__global__ void __launch_bounds__(256) pick(const float* x, const int* which, float* y) { //@ finding("KL204", "128 B", "0 spills", at="pick"), lens("local")
    float table[32];
    float running = x[threadIdx.x];
    for (int i = 0; i < 32; i++) {
        running = running * x[i] + 1.0f;
        table[i] = running;
    }
    y[threadIdx.x] = table[which[threadIdx.x] & 31];
}
