//@ target sm_86
// Nothing here has code: the file compiles, and each function says why there are no numbers.

template <typename T>
__global__ void never_used(T* x) { //@ finding("KL905", "never_used is not instantiated", at="never_used")
    x[threadIdx.x] = T(1);
}

__device__ float helper(float x) { return x * x; } //@ finding("KL905", "no kernel of this file calls helper", at="helper")
