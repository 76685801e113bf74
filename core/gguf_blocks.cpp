#include "core/gguf_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/dtype.h"
#include "core/error.h"
#include "core/float16.h"

namespace longhand {
namespace {

template <class T>
T at(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

float half(const std::byte* bytes) { return from_f16(at<std::uint16_t>(bytes)); }

template <class T>
void put(std::byte* bytes, T value) {
  std::memcpy(bytes, &value, sizeof value);
}

void put_half(std::byte* bytes, float x) {
  const std::uint16_t rounded = to_f16(x);
  LONGHAND_CHECK(std::isfinite(from_f16(rounded)),
                 "expected a number that f16 can store, at most 65504, got ", x);
  put(bytes, rounded);
}

int low(std::byte b) { return std::to_integer<int>(b) & 15; }
int high(std::byte b) { return std::to_integer<int>(b) >> 4; }

/// Decodes a number that is stored without compression.
template <class T>
void plain(const std::byte* block, float* y) {
  *y = static_cast<float>(at<T>(block));
}
template <class T>
void to_plain(const float* x, std::byte* block) {
  put(block, static_cast<T>(*x));
}
void f16(const std::byte* block, float* y) { *y = half(block); }
void to_f16_block(const float* x, std::byte* block) { put_half(block, *x); }

/// The reciprocal of a block's factor; 0 if the factor rounds to 0 in f16, so that all numbers of
/// the block become 0.
float reciprocal(float factor) { return from_f16(to_f16(factor)) == 0 ? 0 : 1 / factor; }

// Formats with blocks of 32 numbers. A block contains a factor d, in some formats a shift m, and 32
// integers q. If the integers have four or five bits, 16 bytes store their low four bits: the low
// halves of the bytes belong to the first 16 numbers, and the high halves to the last 16. If the
// integers have five bits, a 32-bit word before these bytes stores the fifth bits.

/// GGUF type Q8_0. A number is d q, where d is the block's factor and q is from -128 to 127.
void q8_0(const std::byte* block, float* y) {
  const float d = half(block);
  for (int i = 0; i < 32; ++i) y[i] = d * static_cast<float>(at<std::int8_t>(block + 2 + i));
}

/// Writes a block of Q8_0 as llama.cpp does. d is the largest |x| divided by 127, and q is x / d,
/// rounded to the nearest integer. An error is at most d / 2, plus 127 times the error of d in f16.
void to_q8_0(const float* x, std::byte* block) {
  float largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::abs(x[i]));
  const float d = largest / 127, inverse = reciprocal(d);
  put_half(block, d);
  for (int i = 0; i < 32; ++i) {
    put(block + 2 + i, static_cast<std::int8_t>(std::round(x[i] * inverse)));
  }
}

/// GGUF type Q4_0. A number is d (q - 8), where d is the block's factor and q is from 0 to 15.
void q4_0(const std::byte* block, float* y) {
  const float d = half(block);
  for (int i = 0; i < 16; ++i) {
    y[i] = d * static_cast<float>(low(block[2 + i]) - 8);
    y[i + 16] = d * static_cast<float>(high(block[2 + i]) - 8);
  }
}

/// Writes a block of Q4_0 as llama.cpp does. d is the number with the largest magnitude, divided by
/// -8, so that this number has q = 0. Numbers of the other sign have at most q = 15, so the largest
/// of them may be wrong by |d|. All others are wrong by at most |d| / 2, plus 8 times the error of
/// d in f16. Numbers are multiplied by the f32 value of 1 / d in double, where the products are
/// exact.
void to_q4_0(const float* x, std::byte* block) {
  float largest = 0;
  for (int i = 0; i < 32; ++i) {
    if (std::abs(x[i]) > std::abs(largest)) largest = x[i];
  }
  const float d = largest / -8, inverse = reciprocal(d);
  put_half(block, d);
  const auto q = [&](int i) {
    const double level = static_cast<double>(x[i]) * inverse + 8.5;
    return static_cast<unsigned>(std::min(level, 15.0));
  };
  for (int i = 0; i < 16; ++i) block[2 + i] = std::byte(q(i) | q(i + 16) << 4);
}

/// GGUF type Q4_1. A number is d q + m, where d is the block's factor, m is its shift, and q is
/// from 0 to 15.
void q4_1(const std::byte* block, float* y) {
  const float d = half(block), m = half(block + 2);
  for (int i = 0; i < 16; ++i) {
    y[i] = d * static_cast<float>(low(block[4 + i])) + m;
    y[i + 16] = d * static_cast<float>(high(block[4 + i])) + m;
  }
}

int fifth(std::uint32_t bits, int i) { return static_cast<int>((bits >> i) & 1) << 4; }

/// GGUF type Q5_0. A number is d (q - 16), where d is the block's factor and q is from 0 to 31.
void q5_0(const std::byte* block, float* y) {
  const float d = half(block);
  const auto bits = at<std::uint32_t>(block + 2);
  for (int i = 0; i < 16; ++i) {
    y[i] = d * static_cast<float>((low(block[6 + i]) | fifth(bits, i)) - 16);
    y[i + 16] = d * static_cast<float>((high(block[6 + i]) | fifth(bits, i + 16)) - 16);
  }
}

/// GGUF type Q5_1. A number is d q + m, where d is the block's factor, m is its shift, and q is
/// from 0 to 31.
void q5_1(const std::byte* block, float* y) {
  const float d = half(block), m = half(block + 2);
  const auto bits = at<std::uint32_t>(block + 4);
  for (int i = 0; i < 16; ++i) {
    y[i] = d * static_cast<float>(low(block[8 + i]) | fifth(bits, i)) + m;
    y[i + 16] = d * static_cast<float>(high(block[8 + i]) | fifth(bits, i + 16)) + m;
  }
}

// Formats with blocks of 256 numbers. In Q4_K and Q5_K, a block has two factors d and d' and eight
// parts of 32 numbers. Each part has a six-bit factor f and a six-bit shift s. A number is
// d f q - d' s, where q is an integer. The factors f and shifts s of all parts are packed into
// twelve bytes. In the parts i = 0 to 3, f is the low six bits of byte i, and s is the low six bits
// of byte i + 4. In the parts i = 4 to 7, the low half of byte i + 4 is the low four bits of f, and
// the high half is the low four bits of s. The upper two bits of byte i - 4 are the high two bits
// of f. The upper two bits of byte i are the high two bits of s.

struct Part {
  float factor, shift;
};

Part part_of(const std::byte* block, const std::byte* packed, int i) {
  const auto byte = [&](int place) { return std::to_integer<int>(packed[place]); };
  int f = byte(i) & 63, s = byte(i + 4) & 63;
  if (i >= 4) {
    f = (byte(i + 4) & 15) | (byte(i - 4) >> 6) << 4;
    s = (byte(i + 4) >> 4) | (byte(i) >> 6) << 4;
  }
  return {half(block) * static_cast<float>(f), half(block + 2) * static_cast<float>(s)};
}

/// GGUF type Q4_K, with integers of four bits. A block has eight parts of 32 numbers. The k-th
/// group of 32 bytes stores part 2k in the low halves of its bytes and part 2k + 1 in the high
/// halves.
void q4_k(const std::byte* block, float* y) {
  for (int i = 0; i < 8; ++i) {
    const Part part = part_of(block, block + 4, i);
    const std::byte* const q = block + 16 + i / 2 * 32;
    for (int l = 0; l < 32; ++l) {
      const int bits = i % 2 == 0 ? low(q[l]) : high(q[l]);
      *y++ = part.factor * static_cast<float>(bits) - part.shift;
    }
  }
}

/// x, rounded to the nearest integer from 0 to `largest`. An x halfway between two integers is
/// rounded to the even one. NaN becomes 0.
int nearest_integer(float x, int largest) {
  // Adding 1.5 * 2^23 rounds the sum to an integer, because f32 has 24 significant bits.
  constexpr float shift = 0x1.8p23f;
  return x > 0 ? static_cast<int>(std::min(x, static_cast<float>(largest)) + shift - shift) : 0;
}

/// The factor and the shift of a part of 32 numbers x. A number is about factor * q - shift, where
/// q is an integer from 0 to 15.
struct PartFit {
  float factor, shift;
};

/// Searches for the factor and shift of a part, as llama.cpp does. The search minimises the sum of
/// w (factor * q - shift - x)^2, where q is the integer of x and w = |x| + the root mean square of
/// the part. So large numbers are stored more precisely than small ones.
///
/// The first candidate maps the interval from the smallest x (or 0 if all x are positive) to the
/// largest x onto 0 to 15. Each of the 21 other candidates maps the interval onto 0 to t instead,
/// where t is from 14 to 16. It rounds all x to integers, of which those above 15 become 15. Then
/// the factor and the shift come from a weighted linear regression of x on these integers. The
/// interval of a candidate begins at the best shift so far. A shift is never negative, because a
/// block stores shifts without a sign.
PartFit fit_part(std::span<const float, 32> x) {
  float squares = 0, lowest = 0, highest = x[0];
  for (const float number : x) {
    squares += number * number;
    lowest = std::min(lowest, number);
    highest = std::max(highest, number);
  }
  PartFit best{.factor = 0, .shift = -lowest};
  // The numbers are equal and at most 0, or their differences are too small for f32 arithmetic.
  if (!std::isfinite(16 / (highest - lowest))) return best;
  const float root_mean_square = std::sqrt(squares / 32);
  float sum_w = 0, sum_wx = 0;
  std::array<float, 32> w;
  for (std::size_t i = 0; i < 32; ++i) {
    w[i] = root_mean_square + std::abs(x[i]);
    sum_w += w[i];
    sum_wx += w[i] * x[i];
  }
  std::array<float, 32> q;
  const auto round_all = [&](float scale) {
    for (std::size_t i = 0; i < 32; ++i) {
      q[i] = static_cast<float>(nearest_integer(scale * (x[i] + best.shift), 15));
    }
  };
  const auto error_of = [&](const PartFit& fit) {
    float error = 0;
    for (std::size_t i = 0; i < 32; ++i) {
      const float difference = fit.factor * q[i] - fit.shift - x[i];
      error += w[i] * (difference * difference);
    }
    return error;
  };
  const float first = 15 / (highest - lowest);
  round_all(first);
  best.factor = 1 / first;
  float smallest_error = error_of(best);
  for (int candidate = 0; candidate <= 20; ++candidate) {
    const float t = 15 + (-1 + 0.1f * static_cast<float>(candidate));
    round_all(t / (highest + best.shift));
    float sum_wq = 0, sum_wqq = 0, sum_wqx = 0;
    for (std::size_t i = 0; i < 32; ++i) {
      sum_wq += w[i] * q[i];
      sum_wqq += w[i] * q[i] * q[i];
      sum_wqx += w[i] * q[i] * x[i];
    }
    const float determinant = sum_w * sum_wqq - sum_wq * sum_wq;
    if (!(determinant > 0)) continue;
    PartFit fit{.factor = (sum_w * sum_wqx - sum_wx * sum_wq) / determinant,
                .shift = -((sum_wqq * sum_wx - sum_wq * sum_wqx) / determinant)};
    if (fit.shift < 0) fit = {.factor = sum_wqx / sum_wqq, .shift = 0};
    if (const float error = error_of(fit); error < smallest_error) {
      smallest_error = error;
      best = fit;
    }
  }
  return best;
}

/// Stores the largest of eight factors or shifts, divided by 63, as the f16 number d of a block,
/// and returns each of the eight as a multiple of d, rounded to an integer from 0 to 63.
std::array<int, 8> put_multiples(const std::array<float, 8>& values, std::byte* d) {
  const float largest = std::max(0.0f, *std::ranges::max_element(values));
  put_half(d, largest / 63);
  const float scale = half(d) == 0 ? 0 : 63 / largest;
  std::array<int, 8> multiples;
  for (std::size_t i = 0; i < 8; ++i) multiples[i] = nearest_integer(scale * values[i], 63);
  return multiples;
}

/// Writes a block of Q4_K as llama.cpp does. fit_part() finds factor and shift of each part. They
/// are then rounded to multiples of the block's two f16 factors. The integers q are computed last,
/// from the rounded factor and shift.
void to_q4_k(const float* x, std::byte* block) {
  std::array<float, 8> factors, shifts;
  for (std::size_t i = 0; i < 8; ++i) {
    const PartFit fit = fit_part(std::span<const float, 32>(x + 32 * i, 32));
    factors[i] = fit.factor;
    shifts[i] = fit.shift;
  }
  const std::array<int, 8> f = put_multiples(factors, block), s = put_multiples(shifts, block + 2);
  std::byte* const packed = block + 4;
  for (std::size_t i = 0; i < 4; ++i) {
    packed[i] = std::byte(f[i] | f[i + 4] >> 4 << 6);
    packed[i + 4] = std::byte(s[i] | s[i + 4] >> 4 << 6);
    packed[i + 8] = std::byte((f[i + 4] & 15) | (s[i + 4] & 15) << 4);
  }
  std::fill_n(block + 16, 128, std::byte(0));
  for (int i = 0; i < 8; ++i) {
    const Part part = part_of(block, packed, i);
    if (part.factor == 0) continue;
    for (int l = 0; l < 32; ++l) {
      const int q = nearest_integer((x[32 * i + l] + part.shift) / part.factor, 15);
      block[16 + i / 2 * 32 + l] |= std::byte(i % 2 == 0 ? q : q << 4);
    }
  }
}

/// GGUF type Q5_K: like q4_k(), but with integers of five bits. The fifth bits are in 32 more
/// bytes: bit i of byte l belongs to number l of part i. A part has 32 numbers.
void q5_k(const std::byte* block, float* y) {
  for (int i = 0; i < 8; ++i) {
    const Part part = part_of(block, block + 4, i);
    const std::byte* const q = block + 48 + i / 2 * 32;
    for (int l = 0; l < 32; ++l) {
      const int bits = i % 2 == 0 ? low(q[l]) : high(q[l]);
      const int top = (std::to_integer<int>(block[16 + l]) >> i & 1) << 4;
      *y++ = part.factor * static_cast<float>(bits | top) - part.shift;
    }
  }
}

/// GGUF type Q6_K. A number is d f (q - 32), where d is the block's factor, f is a signed byte for
/// each 16 numbers, and q has six bits. A block has two halves of 128 numbers. The four quarters of
/// a half share 64 bytes, which store the low four bits of q: two quarters use the low halves of
/// these bytes, and two use the high halves. The high two bits of q are in 32 more bytes.
void q6_k(const std::byte* block, float* y) {
  const float d = half(block + 208);
  for (int i = 0; i < 256; ++i) {
    const int part = i / 128, quarter = i % 128 / 32, l = i % 32;
    const std::byte lows = block[part * 64 + quarter % 2 * 32 + l];
    const int four = quarter < 2 ? low(lows) : high(lows);
    const int two = std::to_integer<int>(block[128 + part * 32 + l]) >> (2 * quarter) & 3;
    const auto f = at<std::int8_t>(block + 192 + i / 16);
    y[i] = d * static_cast<float>(f) * static_cast<float>((four | two << 4) - 32);
  }
}

constexpr std::array types{GgufType{0, "F32", 1, 4, plain<float>, to_plain<float>},
                           GgufType{1, "F16", 1, 2, f16, to_f16_block},
                           GgufType{2, "Q4_0", 32, 18, q4_0, to_q4_0},
                           GgufType{3, "Q4_1", 32, 20, q4_1},
                           GgufType{6, "Q5_0", 32, 22, q5_0},
                           GgufType{7, "Q5_1", 32, 24, q5_1},
                           GgufType{8, "Q8_0", 32, 34, q8_0, to_q8_0},
                           GgufType{12, "Q4_K", 256, 144, q4_k, to_q4_k},
                           GgufType{13, "Q5_K", 256, 176, q5_k},
                           GgufType{14, "Q6_K", 256, 210, q6_k},
                           GgufType{28, "F64", 1, 8, plain<double>},
                           GgufType{30, "BF16", 1, 2, plain<bf16>, to_plain<bf16>}};
constexpr std::int64_t largest_block = 256;

}  // namespace

const GgufType* gguf_type(std::uint32_t code) {
  const auto* const found = std::ranges::find(types, code, &GgufType::code);
  return found == types.end() ? nullptr : &*found;
}

std::span<const GgufType* const> block_types() {
  static const std::vector<const GgufType*> all = [] {
    std::vector<const GgufType*> found;
    for (const GgufType& type : types) {
      if (type.block > 1) found.push_back(&type);
    }
    return found;
  }();
  return all;
}

std::string small_name(const GgufType& type) {
  std::string name(type.name);
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

const GgufType* gguf_type(std::string_view name) {
  const auto* const found =
      std::ranges::find_if(types, [&](const GgufType& type) { return small_name(type) == name; });
  return found == types.end() ? nullptr : &*found;
}

const GgufType* written_gguf_type(std::string_view name) {
  const GgufType* const type = gguf_type(name);
  return type && type->encode ? type : nullptr;
}

std::string written_gguf_types() {
  std::string names;
  for (const GgufType& type : types) {
    if (type.encode) names += text(names.empty() ? "" : ", ", small_name(type));
  }
  return names;
}

void decode_gguf(const GgufType& type, std::span<const std::byte> blocks, std::int64_t first,
                 std::span<double> numbers) {
  const std::int64_t last = first + std::ssize(numbers);
  LONGHAND_CHECK(
      first >= 0 && last <= std::ssize(blocks) / static_cast<std::int64_t>(type.bytes) * type.block,
      "GGUF: expected a range of numbers inside a tensor of ", blocks.size(),
      " bytes, got a range that is not inside the tensor: ", numbers.size(), " numbers from index ",
      first, " on");
  std::array<float, largest_block> decoded;
  for (std::int64_t i = first; i < last;) {
    type.decode(blocks.data() + static_cast<std::size_t>(i / type.block) * type.bytes,
                decoded.data());
    const std::int64_t begin = i % type.block, end = std::min(type.block, begin + last - i);
    for (std::int64_t k = begin; k < end; ++k, ++i) {
      numbers[static_cast<std::size_t>(i - first)] = decoded[static_cast<std::size_t>(k)];
    }
  }
}

void encode_gguf(const GgufType& type, std::span<const double> numbers,
                 std::span<std::byte> blocks) {
  const std::size_t count = numbers.size() / static_cast<std::size_t>(type.block);
  LONGHAND_CHECK(type.encode, "GGUF: the type ", type.name, " cannot be written");
  LONGHAND_CHECK(std::ssize(numbers) % type.block == 0,
                 "GGUF: expected a count of numbers that is a multiple of ", type.block,
                 ", the block size of ", type.name, ", got ", numbers.size());
  LONGHAND_CHECK(blocks.size() == count * type.bytes, "GGUF: expected ", count * type.bytes,
                 " bytes for ", numbers.size(), " numbers of type ", type.name, ", got ",
                 blocks.size());
  // A block of several numbers stores each as an integer times a factor of the whole block. It
  // cannot represent a single number that is infinite or NaN.
  const bool finite_only = type.block > 1;
  std::array<float, largest_block> rounded;
  for (std::size_t b = 0; b < count; ++b) {
    for (std::size_t k = 0; k < static_cast<std::size_t>(type.block); ++k) {
      rounded[k] = static_cast<float>(numbers[b * static_cast<std::size_t>(type.block) + k]);
      LONGHAND_CHECK(!finite_only || std::isfinite(rounded[k]), "expected finite numbers, got ",
                     rounded[k]);
    }
    type.encode(rounded.data(), blocks.data() + b * type.bytes);
  }
}

}  // namespace longhand
