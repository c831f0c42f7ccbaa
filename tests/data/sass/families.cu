// All of the small kernels in one cubin: the compiler and the tools start once for each architecture.
#include "ops.cu"
#include "mma.cu"
#if __CUDA_ARCH_FEAT_SM90_ALL || __CUDA_ARCH_FEAT_SM100_ALL || __CUDA_ARCH_FEAT_SM120_ALL || !defined(__CUDA_ARCH__)
#include "adv.cu"
#endif
