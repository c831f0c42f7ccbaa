// 64 running values per thread do not fit into the registers that 1024 threads leave to each: the rest is kept in
// local memory and travels there and back on every step.

constexpr int VALUES = 64;

__global__ void __launch_bounds__(1024) mix(float* out, const float* in, int n, int n_steps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v[VALUES];
#pragma unroll
    for (int k = 0; k < VALUES; ++k)
        v[k] = in[i + k * n];
    for (int step = 0; step < n_steps; ++step) {
#pragma unroll
        for (int k = 0; k < VALUES; ++k)
            v[k] = v[k] * v[(k * 7 + 3) % VALUES] + v[(k + 13) % VALUES];
    }
#pragma unroll
    for (int k = 0; k < VALUES; ++k)
        out[i + k * n] = v[k];
}

void launch_mix(float* out, const float* in, int n, int n_steps)
{
    mix<<<n / 1024, 1024>>>(out, in, n, n_steps);
}
