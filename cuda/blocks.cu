#include "core/contract/blocks.h"

#include "core/contract/matmul.h"
#include "cuda/cuda_backend.h"
#include "cuda/launch.h"
#include "cuda/row.h"
#include "cuda/visit.h"

namespace longhand::cuda {
namespace {

// The types of blocks of GGUF files (core/gguf_blocks.cpp explains their layouts). number() returns
// number i of a block.

__device__ __forceinline__ int byte_at(const std::uint8_t* from) { return *from; }

/// The value of an IEEE binary16 number. Exponent and fraction are moved to their places in a
/// float. The exponents of the two formats differ by 112.
__device__ __forceinline__ float half_at(const std::uint8_t* from) {
  const std::uint32_t half = from[0] | std::uint32_t{from[1]} << 8;
  std::uint32_t bits = (half & 0x7fffu) << 13;
  const bool finite = (half & 0x7c00u) != 0x7c00u;
  if (!finite) bits |= 0x7f800000u;
  const float size = finite ? __uint_as_float(bits) * 0x1p112f : __uint_as_float(bits);
  return (half & 0x8000u) ? -size : size;
}

/// The four bits of number i of 32 numbers in 16 bytes.
__device__ __forceinline__ int four_bits(const std::uint8_t* bytes, int i) {
  const int both = byte_at(bytes + i % 16);
  return i < 16 ? both & 15 : both >> 4;
}
/// 16 if bit i of a word of 32 bits is set, otherwise 0.
__device__ __forceinline__ int fifth_bit(const std::uint8_t* word, int i) {
  return (byte_at(word + i / 8) >> (i % 8) & 1) << 4;
}

struct Q8Block {
  static constexpr std::uint32_t code = 8;
  static constexpr int numbers = 32, bytes = 34;
  static __device__ float number(const std::uint8_t* block, int i) {
    return half_at(block) * static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
  }
};

struct Q4Block {
  static constexpr std::uint32_t code = 2;
  static constexpr int numbers = 32, bytes = 18;
  static __device__ float number(const std::uint8_t* block, int i) {
    return half_at(block) * static_cast<float>(four_bits(block + 2, i) - 8);
  }
};

struct ShiftedQ4Block {
  static constexpr std::uint32_t code = 3;
  static constexpr int numbers = 32, bytes = 20;
  static __device__ float number(const std::uint8_t* block, int i) {
    return half_at(block) * static_cast<float>(four_bits(block + 4, i)) + half_at(block + 2);
  }
};

struct Q5Block {
  static constexpr std::uint32_t code = 6;
  static constexpr int numbers = 32, bytes = 22;
  static __device__ float number(const std::uint8_t* block, int i) {
    const int q = four_bits(block + 6, i) | fifth_bit(block + 2, i);
    return half_at(block) * static_cast<float>(q - 16);
  }
};

struct ShiftedQ5Block {
  static constexpr std::uint32_t code = 7;
  static constexpr int numbers = 32, bytes = 24;
  static __device__ float number(const std::uint8_t* block, int i) {
    const int q = four_bits(block + 8, i) | fifth_bit(block + 4, i);
    return half_at(block) * static_cast<float>(q) + half_at(block + 2);
  }
};

/// f q - s, where f and s are the factor and the shift of a part of Q4_K or Q5_K.
__device__ __forceinline__ float in_part(const std::uint8_t* block, int part, int q) {
  const std::uint8_t* const packed = block + 4;
  int factor = byte_at(packed + part) & 63, shift = byte_at(packed + part % 4 + 4) & 63;
  if (part >= 4) {
    factor = (byte_at(packed + part + 4) & 15) | byte_at(packed + part - 4) >> 6 << 4;
    shift = byte_at(packed + part + 4) >> 4 | byte_at(packed + part) >> 6 << 4;
  }
  return half_at(block) * static_cast<float>(factor) * static_cast<float>(q) -
         half_at(block + 2) * static_cast<float>(shift);
}
/// The four bits of number i of 256 numbers, of which two parts of 32 share 32 bytes.
__device__ __forceinline__ int four_bits_of_part(const std::uint8_t* bytes, int i) {
  const int both = byte_at(bytes + i / 64 * 32 + i % 32);
  return i / 32 % 2 == 0 ? both & 15 : both >> 4;
}

struct Q4KBlock {
  static constexpr std::uint32_t code = 12;
  static constexpr int numbers = 256, bytes = 144;
  static __device__ float number(const std::uint8_t* block, int i) {
    return in_part(block, i / 32, four_bits_of_part(block + 16, i));
  }
};

struct Q5KBlock {
  static constexpr std::uint32_t code = 13;
  static constexpr int numbers = 256, bytes = 176;
  static __device__ float number(const std::uint8_t* block, int i) {
    const int fifth = (byte_at(block + 16 + i % 32) >> (i / 32) & 1) << 4;
    return in_part(block, i / 32, four_bits_of_part(block + 48, i) | fifth);
  }
};

struct Q6KBlock {
  static constexpr std::uint32_t code = 14;
  static constexpr int numbers = 256, bytes = 210;
  static __device__ float number(const std::uint8_t* block, int i) {
    const int half = i / 128, quarter = i % 128 / 32, l = i % 32;
    const int both = byte_at(block + half * 64 + quarter % 2 * 32 + l);
    const int four = quarter < 2 ? both & 15 : both >> 4;
    const int two = byte_at(block + 128 + half * 32 + l) >> (2 * quarter) & 3;
    const auto factor = static_cast<float>(static_cast<std::int8_t>(block[192 + i / 16]));
    return half_at(block + 208) * factor * static_cast<float>((four | two << 4) - 32);
  }
};

/// Rows of a matrix, and those of them that one part stores: `count` rows from row `first` on.
struct PartOfRows {
  const std::uint8_t* bytes;
  std::int64_t first, count, all;
};

/// Row i of y is row ids_i of the matrix, or row i if `ids` is null. Writes only the rows that are
/// in the part. If an id is out of range, the first part writes NaN. Each thread decodes one
/// number.
template <class Block, class T>
__global__ void __launch_bounds__(block_threads)
    decode_rows(PartOfRows part, const std::int32_t* ids, T* y, std::int64_t size,
                std::int64_t columns) {
  const std::int64_t i = thread_in_grid();
  if (i >= size) return;
  const RowColumn at = row_column(i, columns);
  const std::int64_t id = ids ? ids[at.row] : at.row;
  if (id < 0 || id >= part.all) {
    if (part.first == 0) y[i] = from_float<T>(NAN);
    return;
  }
  const std::int64_t row = id - part.first;
  if (row < 0 || row >= part.count) return;
  const std::int64_t block = (row * columns + at.column) / Block::numbers;
  y[i] = from_float<T>(Block::number(part.bytes + block * Block::bytes,
                                     static_cast<int>(at.column % Block::numbers)));
}

template <class T, class Block>
bool decode_if(CudaBackend& backend, const BlockRows& rows, const PartOfRows& part,
               const std::int32_t* ids, const Tensor& y) {
  if (rows.type->code != Block::code) return false;
  launch(backend.stream(), grid_of(y.size()), block_threads, 0, decode_rows<Block, T>, part, ids,
         y.data<T>(), y.size(), y.columns());
  return true;
}

template <class T>
void decode(CudaBackend& backend, const BlockMatrix& w, const std::int32_t* ids, const Tensor& y) {
  std::int64_t first = 0;
  for (const BlockRows& rows : w.parts) {
    const PartOfRows part{static_cast<const std::uint8_t*>(rows.bytes.address()), first,
                          rows.bytes.rows(), w.rows()};
    const auto with = [&]<class... Blocks>() {
      return (decode_if<T, Blocks>(backend, rows, part, ids, y) || ...);
    };
    const bool known = with.template operator()<Q8Block, Q4Block, ShiftedQ4Block, Q5Block,
                                                ShiftedQ5Block, Q4KBlock, Q5KBlock, Q6KBlock>();
    LONGHAND_CHECK(known, "cuda: expected a type with a factor for each block, got ",
                   rows.type->name);
    first += part.count;
  }
}

}  // namespace

/// Decodes the whole matrix to f32 and multiplies it. The decoded matrix exists during the product
/// only.
void run(CudaBackend& backend, const BlockMatmul& op) {
  const Tensor w(backend, {op.w.rows(), op.w.columns}, DType::f32);
  decode<float>(backend, op.w, nullptr, w);
  const auto rows = [](const Tensor& x) {
    return x ? x.reshape({x.shape().rows(), x.columns()}) : x;
  };
  backend.run(Matmul{.a = rows(op.a),
                     .b = w,
                     .transpose_b = op.transpose_w,
                     .bias = op.bias,
                     .residual = rows(op.residual),
                     .c = rows(op.c.tensor),
                     .beta = op.c.add ? 1.0 : 0.0,
                     .math = op.math});
}

void run(CudaBackend& backend, const BlockEmbedding& op) {
  visit_activation(op.y.dtype(), [&]<class T>(T) {
    decode<T>(backend, op.w, op.ids.data<std::int32_t>(), op.y);
  });
}

}  // namespace longhand::cuda
