//@ target sm_86
// The compiler's errors, on their lines.

__global__ void broken(float* x) {
    float y = 1.0f //@ finding("KL901", "never referenced")
    x[0] = y; //@ finding("KL901", "expected a \";\"")
    x[1] = undefined_name; //@ finding("KL901", "undefined_name")
}
