#include "core/contract/blocks.h"

#include <algorithm>
#include <vector>

#include "core/contract/require.h"
#include "core/cpu/blocks/kernels.h"
#include "core/cpu/chunks.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/gemm/kernels.h"

namespace longhand::cpu {
namespace {

/// Largest number of rows of `a` for which rows of w are decoded one by one, or not at all. With
/// more rows, it is faster to decode many rows of w and to multiply them by all rows of `a`.
constexpr std::int64_t few_rows = 8;
/// Maximum size of a decoded strip, which is a range of rows of w. A strip of 64 rows may be
/// larger.
constexpr std::int64_t strip_bytes = std::int64_t{8} << 20;

const BlockTypeKernels& kernels_of(const CpuBackend& backend, const GgufType& type) {
  const BlockTypeKernels* const found = kernels_for<BlockKernels>(backend.isa()).of_type(type.code);
  LONGHAND_CHECK(found, "cpu: expected a type with a factor for each block, got ", type.name);
  return *found;
}

/// One part of w (BlockMatrix::parts) and the kernels for its type.
struct BlockPart {
  const BlockTypeKernels* kernels;
  const std::byte* blocks;
  std::int64_t row_bytes, blocks_of_row, columns;

  BlockPart(const CpuBackend& backend, const BlockRows& part, std::int64_t width)
      : kernels(&kernels_of(backend, *part.type)),
        blocks(static_cast<const std::byte*>(part.bytes.address())),
        row_bytes(part.bytes.columns()),
        blocks_of_row(width / part.type->block),
        columns(width) {}

  const std::byte* row(std::int64_t i) const { return blocks + i * row_bytes; }
  void decode(std::int64_t i, float* numbers) const {
    kernels->decode(row(i), blocks_of_row, numbers);
  }
};

std::byte* at(const Tensor& x, std::int64_t element) {
  return static_cast<std::byte*>(x.address()) +
         element * static_cast<std::int64_t>(size_of(x.dtype()));
}

/// The columns of x from index `first` on, as an operand or a result of a product. If x is empty,
/// the data is null.
template <class Matrix>
Matrix columns_from(const Tensor& x, std::int64_t first) {
  Matrix matrix;
  if (!x) return matrix;
  matrix.data = at(x, first);
  matrix.type = x.dtype();
  matrix.ld = x.columns();
  return matrix;
}

class Product {
 public:
  Product(CpuBackend& backend, const BlockMatmul& op)
      : backend_(backend), op_(op), m_(op.a.rows()), math_(backend.math(op.math)) {}

  void run() {
    if (m_ == 0) return;
    if (op_.transpose_w && m_ <= few_rows) {
      few();
    } else {
      strips();
    }
  }

 private:
  /// Divides each part of w into strips of at most `longest` rows, and calls body(part, first,
  /// beside, count) for each strip of `count` rows. The strip begins with row `first` of the part,
  /// which is row `beside` of w.
  template <class Body>
  void for_each_strip(std::int64_t longest, Body&& body) {
    std::int64_t beside = 0;
    for (const BlockRows& part : op_.w.parts) {
      for (std::int64_t first = 0; first < part.bytes.rows(); first += longest) {
        const std::int64_t count = std::min(longest, part.bytes.rows() - first);
        body(BlockPart(backend_, part, op_.w.columns), first, beside, count);
        beside += count;
      }
    }
  }

  /// Decodes strips of w to floats and multiplies them. If w is not transposed, a strip contributes
  /// to every entry of c. The contributions are then added in f32, and rounded once.
  void strips() {
    const std::int64_t k = op_.w.columns;
    const std::int64_t fitting = strip_bytes / 4 / std::max<std::int64_t>(1, k);
    const std::int64_t longest = std::max<std::int64_t>(fitting / 64 * 64, 64);
    const Tensor floats(backend_, {std::min(longest, op_.w.rows()), k}, DType::f32);
    const Tensor& c = op_.c.tensor;
    const bool one_strip = op_.w.parts.size() == 1 && op_.w.rows() <= longest;
    const bool once = op_.transpose_w || one_strip;
    const Tensor sums =
        once || c.dtype() == DType::f32 ? Tensor() : Tensor(backend_, c.shape(), DType::f32);
    for_each_strip(longest, [&](const BlockPart& part, std::int64_t first, std::int64_t beside,
                                std::int64_t count) {
      float* const numbers = floats.data<float>();
      parallel_for(backend_.threads(), count, rows_per_chunk(k),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t i = begin; i < end; ++i) {
                       part.decode(first + i, numbers + i * k);
                     }
                   });
      Gemm g{};
      g.m = m_;
      g.math = math_;
      g.b = columns_from<GemmOperand>(floats, 0);
      g.b.transposed = op_.transpose_w;
      const bool is_first = beside == 0, is_last = beside + count == op_.w.rows();
      if (op_.transpose_w) {
        g.n = count;
        g.k = k;
        g.a = columns_from<GemmOperand>(op_.a, 0);
        g.c = columns_from<GemmResult>(c, beside);
        g.beta = op_.c.add ? 1 : 0;
        if (op_.bias) g.epilogue.bias = op_.bias.data<float>() + beside;
        g.epilogue.residual = columns_from<GemmOperand>(op_.residual, beside);
      } else {
        g.n = k;
        g.k = count;
        g.a = columns_from<GemmOperand>(op_.a, beside);
        g.c = columns_from<GemmResult>(sums && !is_last ? sums : c, 0);
        g.beta = is_first ? (op_.c.add && !sums ? 1 : 0) : (sums && is_last ? 0 : 1);
        if (sums && is_last) {
          g.epilogue.residual = columns_from<GemmOperand>(sums, 0);
          g.beta = op_.c.add ? 1 : 0;
        }
      }
      gemm(g, backend_.isa(), backend_.threads(), backend_.gemm_workspace());
    });
  }

  /// Computes the product with one row of w at a time.
  void few() {
    const std::int64_t k = op_.w.columns, n = op_.w.rows();
    const auto& products = kernels_for<GemmKernels>(backend_.isa());
    const Tensor a(backend_, {m_, k}, DType::f32), sums(backend_, {m_, n}, DType::f32);
    products.rows_of_a({.data = op_.a.address(),
                        .is_bf16 = op_.a.dtype() == DType::bf16,
                        .k_contiguous = true,
                        .ld = k,
                        .first = 0,
                        .count = m_,
                        .k_first = 0,
                        .k_count = k,
                        .out = a.address()},
                       math_ == Math::bf16);
    std::vector<std::int8_t> integers;
    std::vector<float> factors, sums_of_parts, half_sums;
    RoundedRows rounded{.k = k};
    if (math_ == Math::fast) {
      const auto slots = static_cast<std::size_t>(m_ * rounded.slots());
      integers.resize(static_cast<std::size_t>(m_ * k));
      factors.resize(slots);
      sums_of_parts.resize(slots);
      half_sums.resize(slots);
      rounded.integers = integers.data();
      rounded.factors = factors.data();
      rounded.sums = sums_of_parts.data();
      rounded.half_sums = half_sums.data();
      kernels_for<BlockKernels>(backend_.isa()).round_rows(a.data<float>(), m_, rounded);
    }
    for_each_strip(
        n, [&](const BlockPart& part, std::int64_t, std::int64_t beside, std::int64_t count) {
          const std::int64_t chunk = rows_per_chunk(k);
          parallel_for(backend_.threads(), count, chunk, [&](std::int64_t begin, std::int64_t end) {
            float* const c = sums.data<float>() + beside + begin;
            if (math_ == Math::fast) {
              part.kernels->integer_dots({.a = rounded,
                                          .rows = m_,
                                          .w = part.row(begin),
                                          .row_bytes = part.row_bytes,
                                          .columns = end - begin,
                                          .c = c,
                                          .ldc = n});
              return;
            }
            std::vector<float> numbers(static_cast<std::size_t>(k));
            for (std::int64_t i = begin; i < end; ++i) {
              part.decode(i, numbers.data());
              products.dots({.rows = m_,
                             .cols = 1,
                             .k = k,
                             .a = a.data<float>(),
                             .b = numbers.data(),
                             .b_bf16 = false,
                             .round = math_ == Math::bf16,
                             .ldb = k,
                             .c = c + i - begin,
                             .ldc = n,
                             .alpha = 1,
                             .beta = 0});
            }
          });
        });
    finish(products, sums);
  }

  /// c = sums + bias + residual, and the old values of c if the target adds.
  void finish(const GemmKernels& products, const Tensor& sums) {
    const std::int64_t n = op_.w.rows();
    const Tensor& c = op_.c.tensor;
    products.epilogue({.rows = m_,
                       .cols = n,
                       .sums = sums.data<float>(),
                       .ld_sums = n,
                       .bias = op_.bias ? op_.bias.data<float>() : nullptr,
                       .has_f = false,
                       .f = Activation::identity,
                       .pre = nullptr,
                       .pre_bf16 = false,
                       .ld_pre = 0,
                       .residual = op_.residual.address(),
                       .residual_bf16 = op_.residual && op_.residual.dtype() == DType::bf16,
                       .ld_residual = n,
                       .at = nullptr,
                       .at_bf16 = false,
                       .ld_at = 0,
                       .c = c.address(),
                       .c_bf16 = c.dtype() == DType::bf16,
                       .ldc = n,
                       .beta = op_.c.add ? 1.0f : 0.0f});
  }

  CpuBackend& backend_;
  const BlockMatmul& op_;
  std::int64_t m_;
  Math math_;
};

}  // namespace

void run(CpuBackend& backend, const BlockMatmul& op) { Product(backend, op).run(); }

void run(CpuBackend& backend, const BlockEmbedding& op) {
  require_indices(BlockEmbedding::name, "ids", op.ids, op.w.rows());
  const std::int64_t k = op.w.columns;
  const auto* const ids = op.ids.data<std::int32_t>();
  std::vector<BlockPart> parts;
  for (const BlockRows& part : op.w.parts) parts.emplace_back(backend, part, k);
  visit_activation(op.y.dtype(), [&]<class T>(T) {
    T* const y = op.y.data<T>();
    parallel_for(backend.threads(), op.ids.size(), rows_per_chunk(k),
                 [&](std::int64_t begin, std::int64_t end) {
                   std::vector<float> numbers(static_cast<std::size_t>(k));
                   for (std::int64_t i = begin; i < end; ++i) {
                     std::int64_t row = ids[i];
                     std::size_t part = 0;
                     while (row >= op.w.parts[part].bytes.rows()) {
                       row -= op.w.parts[part++].bytes.rows();
                     }
                     parts[part].decode(row, numbers.data());
                     std::ranges::transform(numbers, y + i * k, [](float x) { return T(x); });
                   }
                 });
  });
}

}  // namespace longhand::cpu
