#include "core/cpu/blocks/kernels.h"
#include "core/cpu/blocks/types.h"

namespace longhand::cpu::LONGHAND_ISA {
namespace {

template <class Type>
void decode(const std::byte* blocks, std::int64_t count, float* numbers) {
  for (std::int64_t b = 0; b < count; ++b, blocks += Type::bytes) {
    const Factors f = Type::factors(blocks, Type::parts);
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

/// Computes M entries of a column of c. A number of w is (q - centre) factor + shift, so the sum
/// over a part is
///   sum of w a = factor (sum of q a) + (shift - centre factor) (sum of a).
/// The sum of q a is computed with integers, and round_rows() has already stored the sum of a.
template <class Type, int M>
struct ColumnDots {
  const BlockDots& d;
  const std::int64_t first;  // row of `a` of the first entry
  const std::byte* row;      // row of w
  const std::int64_t parts = d.a.k / block_part;
  // Parts alternate between two sums, so that an addition need not wait for the one before it.
  EightFloats sums[M][2] = {};
  // Sums over parts of (shift - centre factor) (sum of a).
  EightFloats corrections[M] = {};

  [[gnu::always_inline]] void run(float* c) {
    std::int64_t at = 0;
    for (; at + 8 <= parts; at += 8) add(at, 8);
    if (Type::parts == 1 && at < parts) add(at, static_cast<int>(parts - at));
#pragma GCC unroll 2
    for (int m = 0; m < M; ++m) {
      sums[m][0] += corrections[m];
      c[m * d.ldc] = sum(sums[m][0], sums[m][1]);
    }
  }

 private:
  /// Adds `count` parts, at most eight, beginning with part `at`.
  [[gnu::always_inline]] void add(std::int64_t at, int count) {
    const std::byte* const block = row + at / Type::parts * Type::bytes;
    const Factors f = Type::factors(block, count);
    EightFloats low[M], high[M];  // products of the factors of w and of a
#pragma GCC unroll 2
    for (int m = 0; m < M; ++m) {
      const std::int64_t p = (first + m) * d.a.slots() + at;
      const EightFloats factors = load_floats(d.a.factors + p);
      low[m] = f.low * factors;
      high[m] = Type::equal ? low[m] : f.high * factors;
      if constexpr (!Type::shifts && Type::centre == 0) continue;
      const EightFloats of_a = load_floats(d.a.sums + p);
      if constexpr (Type::shifts) {
        corrections[m] += f.shift * of_a;
      } else if constexpr (Type::equal) {
        corrections[m] += f.low * of_a * -Type::centre;
      } else {
        const EightFloats half = load_floats(d.a.half_sums + p);
        corrections[m] += (f.low * half + f.high * (of_a - half)) * -Type::centre;
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      if (i >= count) break;
      const Bytes q =
          Type::parts == 1 ? Type::integers(block + i * Type::bytes, 0) : Type::integers(block, i);
#pragma GCC unroll 2
      for (int m = 0; m < M; ++m) {
        const std::int64_t p = (first + m) * parts + at + i;
        const Bytes a = load_bytes(d.a.integers + p * block_part);
        add_scaled<Type::equal>(sums[m][i % 2], sums_of_products<Type::is_signed>(q, a), low[m][i],
                                high[m][i]);
      }
    }
  }
};

/// Number of rows of `a` that are processed at a time.
constexpr int rows_at_once = 2;

template <class Type>
void integer_dots(const BlockDots& d) {
  const std::byte* row = d.w;
  for (std::int64_t j = 0; j < d.columns; ++j, row += d.row_bytes) {
    std::int64_t i = 0;
    for (; i + rows_at_once <= d.rows; i += rows_at_once) {
      ColumnDots<Type, rows_at_once>{d, i, row}.run(d.c + i * d.ldc + j);
    }
    if (i < d.rows) ColumnDots<Type, 1>{d, i, row}.run(d.c + i * d.ldc + j);
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

/// A part of RoundedRows.
struct RoundedPart {
  float factor = 0, sum = 0, half_sum = 0;
};
/// Rounds a part to integers of 8 bits. If a number is NaN or infinite, the factor becomes NaN.
RoundedPart round_part(const float* from, std::int8_t* integers) {
  using SignedFew [[gnu::vector_size(lanes)]] = std::int8_t;
  // A float of this size has no fractional bits. Adding it to a number rounds the number to an
  // integer, which is then in the low bits of the sum.
  constexpr float large = 0x1.8p23f;
  Vec largest(0.0), zero(0.0);
  for (int i = 0; i < block_part; i += lanes) {
    const Vec x = load(from + i);
    largest = max(abs(x), largest);
    zero += x - x;
  }
  const float most = max(largest), factor = most / 127 + sum(zero);
  const Vec inverse(most > 0 ? 127 / most : 0.0f);
  for (int i = 0; i < block_part; i += lanes) {
    const IntVec whole = bits(load(from + i) * inverse + Vec(large)) - bits(Vec(large));
    const auto bytes = __builtin_convertvector(whole.v, SignedFew);
    __builtin_memcpy(integers + i, &bytes, sizeof bytes);
  }
  int first = 0, last = 0;
  for (int j = 0; j < block_part / 2; ++j) {
    first += integers[j];
    last += integers[block_part / 2 + j];
  }
  return {factor, factor * static_cast<float>(first + last), factor * static_cast<float>(first)};
}

void round_rows(const float* a, std::int64_t rows, const RoundedRows& to) {
  const std::int64_t parts = to.k / block_part, slots = to.slots();
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t p = 0; p < slots; ++p) {
      const std::int64_t first = i * to.k + p * block_part, at = i * slots + p;
      const RoundedPart part =
          p < parts ? round_part(a + first, to.integers + first) : RoundedPart{};
      to.factors[at] = part.factor;
      to.sums[at] = part.sum;
      to.half_sums[at] = part.half_sum;
    }
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
