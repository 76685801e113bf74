#include "tests/attention_tile_probe.h"

#include "core/cpu/attention/forward_rows.h"
#include "core/cpu/attention/gradient_work.h"
#include "core/cpu/attention/softmax_rows.h"
#include "core/cpu/isa.h"
#include "tests/tile_model.h"

namespace longhand::cpu {
namespace LONGHAND_ISA::attention {
namespace {

/// Configures the registers when constructed, because attention constructs new ones for each
/// product.
struct ReadyTiles : TileModel {
  ReadyTiles() { configure(); }
};

}  // namespace
}  // namespace LONGHAND_ISA::attention

template <>
const AttentionTileProbe& kernels<AttentionTileProbe, Isa::LONGHAND_ISA>() {
  using namespace LONGHAND_ISA::attention;
  constexpr Rule softmax = Rule::softmax;
  static constexpr AttentionTileProbe probe{
      .forward = {.exact = forward_kernels<float, Exact, SoftmaxRows>,
                  .fast = forward_kernels<float, Tiled<ReadyTiles, 2>, SoftmaxRows>,
                  .bf16 = forward_kernels<float, Tiled<ReadyTiles, 1>, SoftmaxRows>},
      .backward = {.exact = gradient_kernels<float, Exact, softmax>,
                   .fast = gradient_kernels<float, Tiled<ReadyTiles, 2>, softmax>,
                   .bf16 = gradient_kernels<float, Tiled<ReadyTiles, 1>, softmax>}};
  return probe;
}

}  // namespace longhand::cpu
