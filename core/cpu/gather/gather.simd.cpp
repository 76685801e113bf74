#include "core/cpu/gather/kernels.h"
#include "core/cpu/isa.h"
#include "core/cpu/loop.h"

namespace longhand::cpu {
namespace LONGHAND_ISA {
namespace {

template <class From, class To>
void embedding(const From* table, const std::int32_t* ids, To* y, Store how, std::int64_t rows,
               std::int64_t n) {
  const Output<To> out(y, how);
  for (std::int64_t i = 0; i < rows; ++i) {
    const From* row = table + ids[i] * n;
    for_each_vector(n, [&](auto j, auto v) { out.put(i * n + j, v, v.load(row + j)); });
  }
}

template <class T>
void scatter_rows(const T* dy, const std::int32_t* ids, const std::int64_t* order, float* dtable,
                  std::int64_t rows, std::int64_t n) {
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t row = order ? order[i] : i;
    const T* from = dy + row * n;
    float* to = dtable + ids[row] * n;
    for_each_vector(n, [&](auto j, auto v) { v.store(to + j, v.load(to + j) + v.load(from + j)); });
  }
}

float value_of(float x) { return x; }
float value_of(bf16 x) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(x.bits) << 16);
}

template <class T>
void gather(const T* x, const std::int32_t* index, T* y, std::int64_t rows, std::int64_t n,
            std::int64_t k) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < k; ++j) y[i * k + j] = x[i * n + index[i * k + j]];
  }
}

/// The backward pass of gather(). Sums the contributions to a row of dx in f32, and rounds each sum
/// once to the type of dx.
template <class T>
void gather_backward(const std::int32_t* index, const T* dy, T* dx, bool add, float* sums,
                     std::int64_t rows, std::int64_t n, std::int64_t k) {
  for (std::int64_t i = 0; i < rows; ++i) {
    T* row = dx + i * n;
    for_each_vector(n,
                    [&](auto j, auto v) { v.store(sums + j, add ? v.load(row + j) : Vec(0.0)); });
    for (std::int64_t j = 0; j < k; ++j) sums[index[i * k + j]] += value_of(dy[i * k + j]);
    for_each_vector(n, [&](auto j, auto v) { v.store(row + j, v.load(sums + j)); });
  }
}

/// Finds the largest entry of each row. Each vector lane keeps the maximum of its entries and the
/// index of the maximum. Only a strictly larger entry replaces the maximum, so each lane keeps the
/// first of several equal maxima.
template <class T>
void argmax(const T* x, std::int32_t* y, std::int64_t rows, std::int64_t n) {
  for (std::int64_t i = 0; i < rows; ++i) {
    const T* row = x + i * n;
    // Comparisons with NaN are false. If the first entry is NaN, it therefore remains the maximum,
    // as in the loop of the reference backend.
    const float front = value_of(row[0]);
    if (front != front) {
      y[i] = 0;
      continue;
    }
    Vec largest(front);
    IntVec where(0);
    for_each_vector(n, [&](auto j, auto v) {
      const Vec a = v.load_or(row + j, front);
      const Mask larger = a > largest;
      largest = max(a, largest);
      where = select(larger, lane_indices() + IntVec(static_cast<std::int32_t>(j)), where);
    });
    const float top = max(largest);
    std::int32_t found = front == top ? 0 : static_cast<std::int32_t>(n);
    for (int lane = 0; lane < lanes; ++lane) {
      if (largest.v[lane] == top && where.v[lane] < found) found = where.v[lane];
    }
    y[i] = found;
  }
}

bool in_range(const std::int32_t* index, std::int64_t n, std::int64_t bound) {
  Mask out = Vec(0.0) != Vec(0.0);
  const IntVec last(static_cast<std::int32_t>(bound > 0x7fffffff ? 0x7fffffff : bound - 1));
  for_each_vector(n, [&](auto i, auto v) {
    const IntVec a = v.load_words(index + i);
    out = out | (a < IntVec(0)) | (a > last);
  });
  return !any(out);
}

template <class From, class To>
constexpr EmbeddingKernels<From, To> embedding_table{.forward = embedding<From, To>};
template <class T>
constexpr GatherKernels<T> table{.scatter_rows = scatter_rows<T>,
                                 .gather = gather<T>,
                                 .gather_backward = gather_backward<T>,
                                 .argmax = argmax<T>};
constexpr IndexKernels index_table{.in_range = in_range};

}  // namespace
}  // namespace LONGHAND_ISA

template <>
const EmbeddingKernels<float, float>& kernels<EmbeddingKernels<float, float>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::embedding_table<float, float>;
}
template <>
const EmbeddingKernels<float, bf16>& kernels<EmbeddingKernels<float, bf16>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::embedding_table<float, bf16>;
}
template <>
const EmbeddingKernels<bf16, float>& kernels<EmbeddingKernels<bf16, float>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::embedding_table<bf16, float>;
}
template <>
const EmbeddingKernels<bf16, bf16>& kernels<EmbeddingKernels<bf16, bf16>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::embedding_table<bf16, bf16>;
}
template <>
const GatherKernels<float>& kernels<GatherKernels<float>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<float>;
}
template <>
const GatherKernels<bf16>& kernels<GatherKernels<bf16>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<bf16>;
}
template <>
const IndexKernels& kernels<IndexKernels, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::index_table;
}

}  // namespace longhand::cpu
