#include "cuda/tensor_cores.h"

#include <array>
#include <span>

#include "cuda/emulator/fused_sum.h"

namespace longhand::emulator {
namespace {

constexpr int rows = 16, columns = 8, most_depth = 16;

float upper_half(unsigned word) { return std::bit_cast<float>(word & 0xffff0000u); }
float lower_half(unsigned word) { return std::bit_cast<float>(word << 16); }

/// Describes how a warp holds the operands a and b of a tensor core product. Four lanes together
/// hold a row of a or a column of b. Entry k of the row or column is in lane lane(k) of these four.
/// This lane holds several words of the row or column. Word number word(k) contains the entry, and
/// value() extracts the entry from the word.
struct Tf32Layout {
  static constexpr int depth = 8;
  static int lane(int k) { return k % 4; }
  static int word(int k) { return k / 4; }
  /// The hardware reads only the upper 19 bits of a tf32 operand.
  static float value(unsigned word, int) { return std::bit_cast<float>(word & 0xffffe000u); }
  static int group(const TensorCoreModel& model) { return model.tf32_group; }
};
struct Bf16Layout {
  static constexpr int depth = 16;
  static int lane(int k) { return k % 8 / 2; }
  static int word(int k) { return k / 8; }
  static float value(unsigned word, int k) { return k % 2 ? upper_half(word) : lower_half(word); }
  static int group(const TensorCoreModel& model) { return model.bf16_group; }
};

/// The operands of a warp, collected from all lanes: a [16, depth], b [depth, 8] and c [16, 8]. The
/// array `b` contains the transpose of b.
struct Tiles {
  float a[rows][most_depth], b[columns][most_depth], c[rows][columns];
};

void add_plainly(Tiles& t, int depth) {
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      float sum = t.c[row][column];
      for (int k = 0; k < depth; ++k) sum += t.a[row][k] * t.b[column][k];
      t.c[row][column] = sum;
    }
  }
}

/// Adds the product a b to c and rounds as tensor cores do (fused_sum.h). One step adds `group`
/// products of two entries to an entry of c, and `bits` determines the precision of this step.
/// Returns false and adds nothing if an entry of a, b or c is not finite.
bool add_by_model(Tiles& t, int depth, int bits, int group) {
  Parts a[rows][most_depth], b[columns][most_depth];
  bool finite = true;
  const auto split = [&](float x) {
    const Parts parts = parts_of(x);
    finite = finite && parts.exponent != exponent_of_infinity;
    return parts;
  };
  for (int k = 0; k < depth; ++k) {
    for (int row = 0; row < rows; ++row) a[row][k] = split(t.a[row][k]);
    for (int column = 0; column < columns; ++column) b[column][k] = split(t.b[column][k]);
  }
  for (const auto& row : t.c) {
    for (const float sum : row) split(sum);
  }
  if (!finite) return false;
  const auto count = static_cast<std::size_t>(group);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      for (int k = 0; k < depth; k += group) {
        t.c[row][column] =
            fused_sum(bits, t.c[row][column], {&a[row][k], count}, {&b[column][k], count});
      }
    }
  }
  return true;
}

template <class Layout>
void multiply(void* const payloads[32]) {
  const auto lane = [&](int index) { return static_cast<const Fragments*>(payloads[index]); };
  const auto entry = [&](int row, int column) -> float& {
    return lane(row % 8 * 4 + column / 2)->c[row / 8 * 2 + column % 2];
  };
  Tiles t;
  for (int k = 0; k < Layout::depth; ++k) {
    for (int row = 0; row < rows; ++row) {
      t.a[row][k] =
          Layout::value(lane(row % 8 * 4 + Layout::lane(k))->a[Layout::word(k) * 2 + row / 8], k);
    }
    for (int column = 0; column < columns; ++column) {
      t.b[column][k] = Layout::value(lane(column * 4 + Layout::lane(k))->b[Layout::word(k)], k);
    }
  }
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) t.c[row][column] = entry(row, column);
  }
  bool added = false;
  if (tensor_cores() != TensorCores::plain) {
    const TensorCoreModel model = model_of(tensor_cores());
    added = add_by_model(t, Layout::depth, model.bits, Layout::group(model));
  }
  if (!added) add_plainly(t, Layout::depth);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) entry(row, column) = t.c[row][column];
  }
}

template <bool transposed>
void load(void* const payloads[32]) {
  for (int lane = 0; lane < 32; ++lane) {
    auto& to = *static_cast<Matrices*>(payloads[lane]);
    for (int i = 0; i < 4; ++i) {
      unsigned word = 0;
      for (int j = 0; j < 2; ++j) {
        const int g = lane / 4, t = 2 * (lane % 4) + j;
        const int row = transposed ? t : g, column = transposed ? g : t;
        const auto* const from = static_cast<const Matrices*>(payloads[8 * i + row])->row;
        word |= unsigned{from[column].bits} << (16 * j);
      }
      to.words[i] = word;
    }
  }
}

}  // namespace

void multiply_tf32(void* const payloads[32]) { multiply<Tf32Layout>(payloads); }
void multiply_bf16(void* const payloads[32]) { multiply<Bf16Layout>(payloads); }
void load_matrices(void* const payloads[32]) { load<false>(payloads); }
void load_matrices_transposed(void* const payloads[32]) { load<true>(payloads); }

}  // namespace longhand::emulator
