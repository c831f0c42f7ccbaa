// CUTLASS 3.x matrix products as its builders choose them: TMA with WGMMA on sm_90a, with tcgen05 on sm_100a.
#include <cutlass/cutlass.h>
#include <cutlass/device_kernel.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

using namespace cute;
using Row = cutlass::layout::RowMajor;
using Col = cutlass::layout::ColumnMajor;

#ifdef FOR_SM100
using Arch = cutlass::arch::Sm100;
using Cluster = Shape<_1, _1, _1>;
#else
using Arch = cutlass::arch::Sm90;
using Cluster = Shape<_2, _1, _1>;
#endif

template <class In, class Tile>
struct Gemm {
  using Out = cutlass::half_t;
  static constexpr int kIn = 128 / cutlass::sizeof_bits<In>::value, kOut = 128 / cutlass::sizeof_bits<Out>::value;
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      Arch, cutlass::arch::OpClassTensorOp, Tile, Cluster, cutlass::epilogue::collective::EpilogueTileAuto, float, float,
      Out, Row, kOut, Out, Row, kOut, cutlass::epilogue::collective::EpilogueScheduleAuto>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      Arch, cutlass::arch::OpClassTensorOp, In, Row, kIn, In, Col, kIn, float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
      cutlass::gemm::collective::KernelScheduleAuto>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue>;
};

using Half = Gemm<cutlass::half_t, Shape<_128, _128, _64>>::Kernel;
using Eight = Gemm<cutlass::float_e4m3_t, Shape<_128, _256, _128>>::Kernel;

template __global__ void cutlass::device_kernel<Half>(CUTLASS_GRID_CONSTANT typename Half::Params const);
template __global__ void cutlass::device_kernel<Eight>(CUTLASS_GRID_CONSTANT typename Eight::Params const);
