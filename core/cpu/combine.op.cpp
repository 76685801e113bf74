#include <cstdint>

#include "core/combinations.h"
#include "core/cpu/isa.h"
#include "core/cpu/store.h"
#include "core/dtype.h"

namespace longhand::cpu {

template <class T>
struct CombineKernels {
  /// The function lines[f] computes n entries of y with formula number f of the enum Combination.
  /// If a_repeats is true, a has only one entry, which is used n times. b_repeats means the same
  /// for b.
  void (*lines[Combinations::size])(const T* a, bool a_repeats, const T* b, bool b_repeats, T* y,
                                    Store how, std::int64_t n);
};

}  // namespace longhand::cpu

#ifdef LONGHAND_ISA
#include "core/cpu/loop.h"

namespace longhand::cpu {
namespace LONGHAND_ISA {
namespace {

template <class T>
[[gnu::always_inline]] inline Vec all_lanes(const T* x) {
  return Vec(sum(Part{1}.load(x)));  // Part{1} loads one entry and sets the other lanes to 0
}

template <class F, class T>
void combine(const T* a, bool a_repeats, const T* b, bool b_repeats, T* y, Store how,
             std::int64_t n) {
  const Output<T> out(y, how);
  if (a_repeats) {
    const Vec one = all_lanes(a);
    for_each_vector(n, [&](auto i, auto v) { out.put(i, v, F::value(one, v.load(b + i))); });
  } else if (b_repeats) {
    const Vec one = all_lanes(b);
    for_each_vector(n, [&](auto i, auto v) { out.put(i, v, F::value(v.load(a + i), one)); });
  } else {
    for_each_vector(n,
                    [&](auto i, auto v) { out.put(i, v, F::value(v.load(a + i), v.load(b + i))); });
  }
}

template <class T, class... F>
constexpr CombineKernels<T> table_of(TypeList<F...>) {
  return {.lines = {combine<F, T>...}};
}
constexpr auto f32_table = table_of<float>(Combinations{});
constexpr auto bf16_table = table_of<bf16>(Combinations{});

}  // namespace
}  // namespace LONGHAND_ISA

template <>
const CombineKernels<float>& kernels<CombineKernels<float>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::f32_table;
}
template <>
const CombineKernels<bf16>& kernels<CombineKernels<bf16>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::bf16_table;
}

}  // namespace longhand::cpu

#else
#include "core/contract/combine.h"
#include "core/cpu/chunks.h"
#include "core/cpu/cpu_backend.h"

namespace longhand::cpu {

void run(CpuBackend& backend, const Combine& op) {
  if (!op.y) return;
  const Shape& shape = op.y.tensor.shape();
  const auto w = walk(shape, {repeated(op.a.shape(), shape), repeated(op.b.shape(), shape)});
  const bool a_repeats = w.inner_step[0] == 0, b_repeats = w.inner_step[1] == 0;
  visit_activation(op.a.dtype(), [&]<class T>(T) {
    const auto line = kernels_for<CombineKernels<T> >(backend.isa()).lines[static_cast<int>(op.f)];
    const T *a = op.a.data<T>(), *b = op.b.data<T>();
    T* y = op.y.tensor.data<T>();
    const auto part = [&](std::int64_t row, std::int64_t first, std::int64_t n, Store how) {
      line(a + w.begin(row, 0) + (a_repeats ? 0 : first), a_repeats,
           b + w.begin(row, 1) + (b_repeats ? 0 : first), b_repeats, y + row * w.inner + first, how,
           n);
    };
    if (w.lines() == 1) {
      const Store how = unless_in_place(unless_in_place(store_to(op.y), op.y, op.a), op.y, op.b);
      parallel_for(backend.threads(), w.inner, grain,
                   [&](std::int64_t begin, std::int64_t end) { part(0, begin, end - begin, how); });
    } else {
      const Store how =
          unless_in_place(unless_in_place(store_to(op.y, w.inner), op.y, op.a), op.y, op.b);
      parallel_for(backend.threads(), w.lines(), rows_per_chunk(w.inner),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t row = begin; row < end; ++row) part(row, 0, w.inner, how);
                   });
    }
  });
}

}  // namespace longhand::cpu
#endif
