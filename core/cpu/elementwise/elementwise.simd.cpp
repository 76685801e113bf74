#include "core/cpu/elementwise/kernels.h"
#include "core/cpu/isa.h"
#include "core/cpu/loop.h"
#include "core/cpu/math.h"

namespace longhand::cpu {
namespace LONGHAND_ISA {
namespace {

template <class T>
void scale(const T* x, float alpha, T* y, Store how, std::int64_t n) {
  const Output<T> out(y, how);
  for_each_vector(n, [&](auto i, auto v) { out.put(i, v, Vec(alpha) * v.load(x + i)); });
}

template <class F, class T>
void activate(const T* x, T* y, Store how, std::int64_t n) {
  const Output<T> out(y, how);
  for_each_vector(n, [&](auto i, auto v) { out.put(i, v, F::value(v.load(x + i))); });
}

template <class F, class T>
void activate_backward(const T* x, const T* dy, T* dx, Store how, std::int64_t n) {
  const Output<T> out(dx, how);
  for_each_vector(
      n, [&](auto i, auto v) { out.put(i, v, v.load(dy + i) * F::derivative(v.load(x + i))); });
}

template <class F, class T>
void gate(const T* x, T* y, Store how, std::int64_t rows, std::int64_t width) {
  const Output<T> out(y, how);
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* gated = x + row * 2 * width;
    for_each_vector(width, [&](auto j, auto v) {
      out.put(row * width + j, v, F::value(v.load(gated + j)) * v.load(gated + width + j));
    });
  }
}

template <class F, class T>
void gate_backward(const T* x, const T* dy, T* dx, Store how, std::int64_t rows,
                   std::int64_t width) {
  const Output<T> out(dx, how);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t first = row * 2 * width, second = first + width;
    for_each_vector(width, [&](auto j, auto v) {
      // Both halves of the row of x are loaded before dx is stored, because dx may be x.
      const Vec gated = v.load(x + first + j), by = v.load(x + second + j);
      const Vec d = v.load(dy + row * width + j);
      out.put(first + j, v, d * F::derivative(gated) * by);
      out.put(second + j, v, d * F::value(gated));
    });
  }
}

template <class T>
void add_bias(const T* x, const float* bias, const T* residual, T* y, Store how, std::int64_t rows,
              std::int64_t columns) {
  const Output<T> out(y, how);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t at = row * columns;
    for_each_vector(columns, [&](auto j, auto v) {
      Vec sum = v.load(x + at + j);
      if (bias) sum += v.load(bias + j);
      if (residual) sum += v.load(residual + at + j);
      out.put(at + j, v, sum);
    });
  }
}

template <class From, class T>
void convert(const From* x, T* y, Store how, std::int64_t n) {
  const Output<T> out(y, how);
  for_each_vector(n, [&](auto i, auto v) { out.put(i, v, v.load(x + i)); });
}

template <class T>
void convert_words(const std::int32_t* x, T* y, Store how, std::int64_t n) {
  const Output<T> out(y, how);
  for_each_vector(n, [&](auto i, auto v) { out.put(i, v, to_float(v.load_words(x + i))); });
}

template <class T>
void convert_bytes(const std::uint8_t* x, T* y, Store how, std::int64_t n) {
  const Output<T> out(y, how);
  for_each_vector(n, [&](auto i, auto v) {
    float wide[lanes] = {};
    for (std::int64_t k = i; k < i + lanes && k < n; ++k) wide[k - i] = x[k];
    out.put(i, v, load(wide));
  });
}

template <class T>
void fill(float value, T* y, Store how, std::int64_t n) {
  const Output<T> out(y, how);
  for_each_vector(n, [&](auto i, auto v) { out.put(i, v, Vec(value)); });
}

template <class T, class... F>
constexpr ElementwiseKernels<T> table_of(TypeList<F...>) {
  return {
      .scale = scale<T>,
      .formulas = {{activate<F, T>, activate_backward<F, T>, gate<F, T>, gate_backward<F, T>}...},
      .add_bias = add_bias<T>,
      .from_f32 = convert<float, T>,
      .from_bf16 = convert<bf16, T>,
      .from_i32 = convert_words<T>,
      .from_u8 = convert_bytes<T>,
      .fill = fill<T>,
  };
}

constexpr auto f32_table = table_of<float>(Formulas{});
constexpr auto bf16_table = table_of<bf16>(Formulas{});

}  // namespace
}  // namespace LONGHAND_ISA

template <>
const ElementwiseKernels<float>& kernels<ElementwiseKernels<float>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::f32_table;
}
template <>
const ElementwiseKernels<bf16>& kernels<ElementwiseKernels<bf16>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::bf16_table;
}

}  // namespace longhand::cpu
