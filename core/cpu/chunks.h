#pragma once

#include <algorithm>
#include <cstdint>

#include "core/contract/target.h"
#include "core/cpu/isa.h"
#include "core/cpu/store.h"
#include "core/error.h"
#include "core/parallel.h"

/// Helpers for operations that process each token separately. The helpers divide the work into
/// chunks and choose how to store results.
namespace longhand::cpu {

/// Number of elements in a chunk of work. A chunk is large enough to outweigh the synchronization
/// of threads and small enough to balance their load. `grain` is a multiple of 64, so that chunks
/// of an aligned tensor are aligned.
inline constexpr std::int64_t grain = 16384;

inline std::int64_t rows_per_chunk(std::int64_t columns) {
  return std::max<std::int64_t>(1, grain / std::max<std::int64_t>(1, columns));
}

/// Minimum size, in bytes, of a result that is written with non-temporal stores. A result of this
/// size would not stay in the cache until the next operation reads it. A normal store first reads
/// the cache line that it overwrites. A non-temporal store does not.
inline constexpr std::size_t stream_from = std::size_t{16} << 20;

/// Returns how to store y. Non-temporal stores are used if y is large, y is overwritten and not
/// added to, and every chunk begins on a 64-byte boundary. Chunks begin at multiples of `unit`
/// elements.
inline Store store_to(const Target& y, std::int64_t unit = grain) {
  const Tensor& tensor = y.tensor;
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.address());
  const bool aligned =
      address % 64 == 0 && unit * static_cast<std::int64_t>(size_of(tensor.dtype())) % 64 == 0;
  return {.add = y.add, .stream = !y.add && aligned && tensor.bytes() >= stream_from};
}

/// Disables non-temporal stores if y has the same memory as x. In this case, reading x has already
/// loaded the cache lines of y.
inline Store unless_in_place(Store how, const Target& y, const Tensor& x) {
  if (y.tensor.same_memory(x)) how.stream = false;
  return how;
}

/// Calls f(float{}) or f(bf16{}), depending on `type`. On the CPU backend, all activations have one
/// of these types.
template <class F>
decltype(auto) visit_activation(DType type, F&& f) {
  if constexpr (has_bf16_kernels) {
    if (type == DType::bf16) return f(bf16{});
  }
  LONGHAND_CHECK(type == DType::f32, "cpu: expected f32", has_bf16_kernels ? " or bf16" : "",
                 ", got ", type);
  return f(float{});
}

}  // namespace longhand::cpu
