#include "tests/attention_tile_probe.h"

#include "core/cpu/attention/softmax_gradients.h"
#include "core/cpu/attention/softmax_rows.h"
#include "core/cpu/attention/tables.h"
#include "core/cpu/isa.h"
#include "tests/tile_model.h"

namespace longhand::cpu {
namespace LONGHAND_ISA::attention {
namespace {

/// Emulated tile registers that are configured by the constructor, because the attention kernels
/// construct new registers for each product.
struct ReadyTiles : TileModel {
  ReadyTiles() { configure(); }
};

}  // namespace
}  // namespace LONGHAND_ISA::attention

template <>
const AttentionTileProbe& kernels<AttentionTileProbe, Isa::LONGHAND_ISA>() {
  using namespace LONGHAND_ISA::attention;
  static constexpr AttentionTileProbe probe{
      .forward = {.exact = forward_kernels<float, Exact, SoftmaxRows>,
                  .fast = forward_kernels<float, Tiled<ReadyTiles, 2>, SoftmaxRows>,
                  .bf16 = forward_kernels<float, Tiled<ReadyTiles, 1>, SoftmaxRows>},
      .backward = {.exact = gradient_kernels<float, Exact, SoftmaxGradients>,
                   .fast = gradient_kernels<float, Tiled<ReadyTiles, 2>, SoftmaxGradients>,
                   .bf16 = gradient_kernels<float, Tiled<ReadyTiles, 1>, SoftmaxGradients>}};
  return probe;
}

}  // namespace longhand::cpu
