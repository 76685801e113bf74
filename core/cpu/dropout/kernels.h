#pragma once

#include <cstdint>

#include "core/cpu/isa.h"
#include "core/cpu/store.h"

namespace longhand::cpu {

/// The parameters of one dropout and of its random numbers (core/contract/dropout.h). They are the
/// same for all entries of the tensor.
struct DropoutStream {
  std::uint32_t counter[3];  // the last three words of the Philox counter; the first word varies
  std::uint32_t key[2];
  std::uint32_t threshold;
  float kept;  // factor of the entries that are not dropped: 1 / (1 - rate)
};

/// Kernels for the entries [begin, end) of x and y. `begin` is a multiple of 4. T is float or bf16.
template <class T>
struct DropoutKernels {
  void (*dropout)(const DropoutStream& stream, const T* x, T* y, Store how, std::int64_t begin,
                  std::int64_t end);
};

}  // namespace longhand::cpu
