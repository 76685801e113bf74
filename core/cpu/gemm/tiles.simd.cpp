#include "core/contract/matmul.h"
#include "core/cpu/gemm/tile_format.h"
#include "core/cpu/isa.h"

namespace longhand::cpu {
namespace LONGHAND_ISA {
namespace {

const PanelFormat rounded_tiles = tile_format<TileRegisters, 1>;  // packs elements rounded to bf16
const PanelFormat split_tiles = tile_format<TileRegisters, 2>;    // packs high and low bf16 parts

}  // namespace
}  // namespace LONGHAND_ISA

template <>
const GemmKernels& kernels<GemmKernels, Isa::LONGHAND_ISA>() {
  static const GemmKernels table = [] {
    GemmKernels t = kernels<GemmKernels, Isa::avx512bf16>();
    t.format[static_cast<std::size_t>(Math::fast)] = &LONGHAND_ISA::split_tiles;
    t.format[static_cast<std::size_t>(Math::bf16)] = &LONGHAND_ISA::rounded_tiles;
    return t;
  }();
  return table;
}

}  // namespace longhand::cpu
