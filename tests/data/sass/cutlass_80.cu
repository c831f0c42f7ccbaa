// CUTLASS 2.x matrix products with cp.async pipelines: half precision, integers and TF32 on tensor
// cores, single precision without them.
#include <cutlass/gemm/device/gemm.h>

using cutlass::half_t;
using cutlass::gemm::GemmShape;
using Row = cutlass::layout::RowMajor;
using Col = cutlass::layout::ColumnMajor;

template <class In, class Out, class Acc, class Block, class Warp, class Instruction, int Stages, class LayoutB,
          class Operation>
using Gemm = typename cutlass::gemm::device::Gemm<
    In, Row, In, LayoutB, Out, Row, Acc, cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80, Block, Warp, Instruction,
    cutlass::epilogue::thread::LinearCombination<Out, 128 / cutlass::sizeof_bits<Out>::value, Acc, Acc>,
    cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>, Stages, 128 / cutlass::sizeof_bits<In>::value,
    128 / cutlass::sizeof_bits<In>::value, false, Operation>::GemmKernel;

using Half = Gemm<half_t, half_t, float, GemmShape<128, 128, 64>, GemmShape<64, 64, 64>, GemmShape<16, 8, 16>, 3, Col,
                  cutlass::arch::OpMultiplyAdd>;
using HalfWide = Gemm<half_t, half_t, half_t, GemmShape<128, 256, 64>, GemmShape<64, 64, 64>, GemmShape<16, 8, 16>, 3,
                      Row, cutlass::arch::OpMultiplyAdd>;
using Bytes = Gemm<int8_t, int32_t, int32_t, GemmShape<128, 128, 128>, GemmShape<64, 64, 128>, GemmShape<16, 8, 32>, 3,
                   Col, cutlass::arch::OpMultiplyAddSaturate>;
using Tf32 = Gemm<float, float, float, GemmShape<128, 128, 32>, GemmShape<64, 64, 32>, GemmShape<16, 8, 8>, 3, Col,
                  cutlass::arch::OpMultiplyAdd>;

using Single = cutlass::gemm::device::Gemm<float, Col, float, Row, float, Row, float, cutlass::arch::OpClassSimt,
                                           cutlass::arch::Sm80>::GemmKernel;

template __global__ void cutlass::Kernel<Half>(Half::Params);
template __global__ void cutlass::Kernel<HalfWide>(HalfWide::Params);
template __global__ void cutlass::Kernel<Bytes>(Bytes::Params);
template __global__ void cutlass::Kernel<Tf32>(Tf32::Params);
template __global__ void cutlass::Kernel<Single>(Single::Params);
