//@ target sm_86
// Two instances of one template on one line: one lens each, worst (most registers) first; findings told once.

template <typename T, int N>
__global__ void axpy(T a, const T* x, T* y, int n) { //@ lens("axpy<float, 1>: "), lens("axpy<double, 4>: "), hover("axpy<double, 4>", "Other instances on this line")
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * N;
    for (int k = 0; k < N; ++k)
        if (i + k < n) y[i + k] += a * x[i + k];
}

void launch(float* x, double* d, int n) {
    axpy<float, 1><<<64, 256>>>(2.0f, x, x, n);
    axpy<double, 4><<<64, 256>>>(2.0, d, d, n);
}
