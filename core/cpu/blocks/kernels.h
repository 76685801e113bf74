#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cpu/isa.h"

/// The kernels for matrices in blocks (core/block_matrix.h) that an instruction set provides.
namespace longhand::cpu {

/// A block has one or eight parts of 32 numbers. Rounding to integers also uses groups of 32.
inline constexpr std::int64_t block_part = 32;

/// Rows of `k` numbers, rounded to integers of 8 bits. Part p of a row contains the numbers 32 p to
/// 32 p + 31. The factor of a part is its largest magnitude divided by 127. A number x is stored as
/// x / factor, rounded to the nearest integer.
struct RoundedRows {
  std::int64_t k = 0;
  std::int8_t* integers = nullptr;  // [rows][k]
  // [rows][slots()]. The numbers after the last part of a row are 0.
  float* factors = nullptr;
  float* sums = nullptr;       // sums of 32 integers, times the factor
  float* half_sums = nullptr;  // the same for the first 16 integers of a part

  /// The number of parts of a row, rounded up to a multiple of eight.
  std::int64_t slots() const { return (k / block_part + 7) / 8 * 8; }
};

/// The arguments of a product of a few rows of `a` with rows of w in blocks:
///   c_ij = sum over p of a_ip w_jp.
struct BlockDots {
  RoundedRows a;
  std::int64_t rows;   // number of rows of `a`
  const std::byte* w;  // the first of the rows of w, which follow each other in memory
  std::int64_t row_bytes;
  std::int64_t columns;  // number of rows of w, which is the number of columns of c
  float* c;
  std::int64_t ldc;
};

/// The kernels for one type of blocks.
struct BlockTypeKernels {
  /// Decodes `count` blocks to the same numbers as decode_gguf().
  void (*decode)(const std::byte* blocks, std::int64_t count, float* numbers);
  /// Computes BlockDots::c from products of the integers of `a` and w.
  void (*integer_dots)(const BlockDots& d);
};

struct BlockKernels {
  /// The kernels for a type with this code (GgufType::code). Null if there are none.
  const BlockTypeKernels* (*of_type)(std::uint32_t code);
  void (*round_rows)(const float* a, std::int64_t rows, const RoundedRows& to);
};

}  // namespace longhand::cpu
