#include "core/cpu/blocks/kernels.h"
#include "core/cpu/blocks/types.h"

namespace longhand::cpu::LONGHAND_ISA {
namespace {

template <class Type>
void decode(const std::byte* blocks, std::int64_t count, float* numbers) {
  for (std::int64_t b = 0; b < count; ++b, blocks += Type::bytes) {
    Factors<Type::parts> f;
    Type::factors(blocks, f);
#pragma GCC unroll 8
    for (int part = 0; part < Type::parts; ++part) {
      const Bytes integers = Type::integers(blocks, part);
      alignas(32) std::uint8_t bytes[block_part];
      for (int r = 0; r < byte_registers; ++r) {
        __builtin_memcpy(bytes + r * sizeof(ByteLanes), &integers.part[r], sizeof(ByteLanes));
      }
      for (int i = 0; i < block_part; i += lanes) {
        const Vec factor(i < 16 ? f.low[part] : f.high[part]);
        const Vec q = floats_at<Type::is_signed>(bytes, i, Type::centre);
        store(numbers + i, Type::shifts ? factor * q + Vec(f.shift[part]) : factor * q);
      }
      numbers += block_part;
    }
  }
}

/// Calls body(block, at, which) for all blocks of a row of w. `at` is the index of the block's
/// first part. `which` is 0 or 1 in turn and selects one of two sums, so that an addition need not
/// wait for the one before it. It is a constant after inlining.
template <class Type, class Body>
[[gnu::always_inline]] inline void for_each_block(const std::byte* row, std::int64_t k,
                                                  Body&& body) {
  const std::int64_t count = k / (block_part * Type::parts);
  std::int64_t b = 0;
  for (; b + 2 <= count; b += 2) {
    body(row + b * Type::bytes, b * Type::parts, 0);
    body(row + (b + 1) * Type::bytes, (b + 1) * Type::parts, 1);
  }
  if (b < count) body(row + b * Type::bytes, b * Type::parts, 0);
}

/// Computes M entries of a column of c. A number of w is (q - centre) factor + shift, so the sum
/// over a part is
///   sum of w a = factor (sum of q a) + (shift - centre factor) (sum of a).
/// The sum of q a is computed with integers, and round_rows() has already stored the sum of a.
template <class Type, int M>
void integer_dot_column(const BlockDots& d, std::int64_t first, const std::byte* row, float* c) {
  EightFloats sums[M][2] = {};
  // sums over all parts of shift * (sum of a), and of factor * (sum of a)
  float shifts[M][2] = {}, centres[M][2] = {};
  const std::int64_t parts = d.a.k / block_part;
  for_each_block<Type>(row, d.a.k, [&](const std::byte* block, std::int64_t at, int which) {
    Factors<Type::parts> f;
    Type::factors(block, f);
#pragma GCC unroll 8
    for (int part = 0; part < Type::parts; ++part) {
      const Bytes q = Type::integers(block, part);
      const int to = Type::parts == 1 ? which : part % 2;
#pragma GCC unroll 2
      for (int m = 0; m < M; ++m) {
        const std::int64_t p = (first + m) * parts + at + part;
        const Bytes a = load_bytes(d.a.integers + p * block_part);
        const EightInts integers = sums_of_products<Type::is_signed>(q, a);
        const float factor = d.a.factors[p];
        add_scaled<Type::equal>(sums[m][to], integers, f.low[part] * factor, f.high[part] * factor);
        if constexpr (Type::shifts) shifts[m][to] += f.shift[part] * d.a.sums[p];
        if constexpr (Type::centre > 0 && Type::equal) centres[m][to] += f.low[part] * d.a.sums[p];
        if constexpr (Type::centre > 0 && !Type::equal) {
          const float half = d.a.half_sums[p];
          centres[m][to] += f.low[part] * half + f.high[part] * (d.a.sums[p] - half);
        }
      }
    }
  });
#pragma GCC unroll 2
  for (int m = 0; m < M; ++m) {
    float entry = sum(sums[m][0], sums[m][1]);
    if constexpr (Type::shifts) entry += shifts[m][0] + shifts[m][1];
    if constexpr (Type::centre > 0) entry -= Type::centre * (centres[m][0] + centres[m][1]);
    c[m * d.ldc] = entry;
  }
}

/// Number of rows of `a` that are processed at a time.
constexpr int rows_at_once = 2;

template <class Type>
void integer_dots(const BlockDots& d) {
  const std::byte* row = d.w;
  for (std::int64_t j = 0; j < d.columns; ++j, row += d.row_bytes) {
    std::int64_t i = 0;
    for (; i + rows_at_once <= d.rows; i += rows_at_once) {
      integer_dot_column<Type, rows_at_once>(d, i, row, d.c + i * d.ldc + j);
    }
    if (i < d.rows) integer_dot_column<Type, 1>(d, i, row, d.c + i * d.ldc + j);
  }
}

template <class Type>
constexpr BlockTypeKernels kernels_of{.decode = decode<Type>, .integer_dots = integer_dots<Type>};

const BlockTypeKernels* of_type(std::uint32_t code) {
  switch (code) {
    case 2:
      return &kernels_of<Q4Blocks>;
    case 3:
      return &kernels_of<ShiftedQ4Blocks>;
    case 6:
      return &kernels_of<Q5Blocks>;
    case 7:
      return &kernels_of<ShiftedQ5Blocks>;
    case 8:
      return &kernels_of<Q8Blocks>;
    case 12:
      return &kernels_of<Q4KBlocks>;
    case 13:
      return &kernels_of<Q5KBlocks>;
    case 14:
      return &kernels_of<Q6KBlocks>;
    default:
      return nullptr;
  }
}

/// Rounds numbers to integers of 8 bits. If a number is NaN or infinite, the factor becomes NaN.
void round_rows(const float* a, std::int64_t rows, const RoundedRows& to) {
  using SignedFew [[gnu::vector_size(lanes)]] = std::int8_t;
  // A float of this size has no fractional bits. Adding it to a number rounds the number to an
  // integer, which is then in the low bits of the sum.
  constexpr float large = 0x1.8p23f;
  for (std::int64_t p = 0; p < rows * to.k / block_part; ++p) {
    const float* from = a + p * block_part;
    Vec largest(0.0), zero(0.0);
    for (int i = 0; i < block_part; i += lanes) {
      const Vec x = load(from + i);
      largest = max(abs(x), largest);
      zero += x - x;
    }
    const float most = max(largest), factor = most / 127 + sum(zero);
    const Vec inverse(most > 0 ? 127 / most : 0.0f);
    std::int8_t* const integers = to.integers + p * block_part;
    for (int i = 0; i < block_part; i += lanes) {
      const IntVec whole = bits(load(from + i) * inverse + Vec(large)) - bits(Vec(large));
      const auto bytes = __builtin_convertvector(whole.v, SignedFew);
      __builtin_memcpy(integers + i, &bytes, sizeof bytes);
    }
    to.factors[p] = factor;
    int first = 0, last = 0;
    for (int j = 0; j < block_part / 2; ++j) {
      first += integers[j];
      last += integers[block_part / 2 + j];
    }
    to.half_sums[p] = factor * static_cast<float>(first);
    to.sums[p] = factor * static_cast<float>(first + last);
  }
}

}  // namespace
}  // namespace longhand::cpu::LONGHAND_ISA

namespace longhand::cpu {

template <>
const BlockKernels& kernels<BlockKernels, Isa::LONGHAND_ISA>() {
  static constexpr BlockKernels table{.of_type = LONGHAND_ISA::of_type,
                                      .round_rows = LONGHAND_ISA::round_rows};
  return table;
}

}  // namespace longhand::cpu
