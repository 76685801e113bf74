#pragma once

#include <algorithm>

#include "cuda/attention/scores.h"
#include "cuda/cuda_backend.h"
#include "cuda/launch.h"

/// Host code that the run() functions of the attention family share.
namespace longhand::cuda {

/// The entries of an f32 tensor, or null if the tensor is empty.
inline const float* pointer(const Tensor& x) { return x ? x.data<float>() : nullptr; }
inline float* mutable_pointer(const Tensor& x) { return x ? x.data<float>() : nullptr; }

template <int columns>
struct Slice {
  static constexpr int value = columns;
};

/// Calls body(Product{}) with the type of products for the math mode. In modes other than exact,
/// bf16 tensors use the bf16 product: their entries are already bf16 numbers, so the product does
/// not round them.
template <class Body>
void visit_math(Math math, DType type, Body&& body) {
  if (math == Math::exact) return body(ExactProduct{});
  if (math == Math::bf16 || type == DType::bf16) return body(Bf16Product{});
  return body(Tf32Product{});
}

/// Calls body(Product{}, Slice<columns>{}) with the type of products for the math mode and with the
/// number of columns per slice for heads of `width` columns.
template <class Body>
void visit_product(Math math, DType type, std::int64_t width, Body&& body) {
  visit_math(math, type, [&](auto product) {
    if (width <= 32) return body(product, Slice<32>{});
    if (width <= 64) return body(product, Slice<64>{});
    return body(product, Slice<128>{});
  });
}

/// Number of rows that one step of the softmax backward pass processes: queries in the kernel for
/// dk and dv, keys in the kernel for dq. It is the largest number for which the tiles fit in 99 KiB
/// of shared memory and the gradients that a block sums up fit in registers.
template <class Product, int slice>
inline constexpr int step_rows = sizeof(typename Product::Element) == 2 ? (slice < 128 ? 64 : 32)
                                 : slice == 32                          ? 64
                                 : slice == 64                          ? 32
                                                                        : 24;

/// Number of blocks with `bytes` bytes of shared memory that fit on a multiprocessor. CUDA reserves
/// another 1 KiB for each block.
inline std::size_t resident_blocks(const DeviceFacts& device, std::size_t bytes) {
  return device.shared_per_multiprocessor / (bytes + 1024);
}

/// Number of resident blocks for which the compiler budgets registers: `most`, or as many as the
/// shared memory of the compiled architecture allows if that is less. A smaller number gives each
/// thread more registers.
constexpr int budgeted_blocks(int most, [[maybe_unused]] std::size_t bytes) {
#if defined(__CUDA_ARCH__)
  const std::size_t fit =
      shared_per_multiprocessor(__CUDA_ARCH__ / 100, __CUDA_ARCH__ / 10 % 10) / (bytes + 1024);
  if (fit < static_cast<std::size_t>(most)) return fit > 1 ? static_cast<int>(fit) : 1;
#endif
  return most;
}

/// `blocks` if the compiler compiles for the architecture sm_`sm`, otherwise 0. As the second
/// argument of __launch_bounds__, 0 lets the compiler choose the number of resident blocks. A
/// kernel uses blocks_on() for an architecture on which the compiler chooses so many blocks that
/// the kernel spills registers. For several architectures, a kernel passes the sum of several
/// calls, of which at most one is not 0.
constexpr int blocks_on([[maybe_unused]] int sm, [[maybe_unused]] int blocks) {
#if defined(__CUDA_ARCH__)
  if (__CUDA_ARCH__ == 10 * sm) return blocks;
#endif
  return 0;
}

/// A kernel has two variants, which need `more` and `less` bytes of shared memory per block. With
/// `more`, a block is faster. Returns true unless `more` would leave a multiprocessor with a single
/// block where `less` allows several. While a single block waits, no other block can work.
inline bool worth_more_memory(const DeviceFacts& device, std::size_t more, std::size_t less) {
  return resident_blocks(device, more) > 1 || resident_blocks(device, less) == 1;
}

/// Number of thread blocks for a kernel whose blocks draw their tiles by ticket (tickets.h). Each
/// block draws the next tile when it has finished one.
inline std::int64_t ticket_blocks(const CudaBackend& backend, std::int64_t tiles) {
  return std::min<std::int64_t>(tiles, std::int64_t{4} * backend.device().multiprocessors);
}

/// Sums `parts`, [outer, results, inner], over its first and last axes in a fixed order. The sums
/// replace the values of `result` or, if result.add is set, are added to them.
void add_up(Stream& stream, const float* parts, std::int64_t outer, std::int64_t inner,
            const Target& result);

/// Sums parts[s * result.size() + i] over all s < slices. The sums replace the values of `result`
/// or, if result.add is set, are added to them.
void add_slices(CudaBackend& backend, const float* parts, int slices, const Target& result);

/// Returns the dot product x . (y + residue) of each row and head, [rows, heads]. Entries of x are
/// first rounded to the precision in which the math mode multiplies matrices, such as bf16.
/// `residue`, the rounding error of y, may be empty.
Tensor row_dots(CudaBackend& backend, Math math, const Heads& x, const Heads& y,
                const Heads& residue = {});

}  // namespace longhand::cuda
