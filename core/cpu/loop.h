#pragma once

#include "core/cpu/simd.h"
#include "core/cpu/store.h"

/// Loops over rows of any length. The loop's body is written once. It receives an index and an
/// object that loads and stores: a Whole for a full vector, or a Part for the rest of a row.
namespace longhand::cpu::LONGHAND_ISA {

struct Whole {
  template <class T>
  Vec load(const T* from) const {
    return LONGHAND_ISA::load(from);
  }
  template <class T>
  Vec load_or(const T* from, float) const {
    return LONGHAND_ISA::load(from);
  }
  IntVec load_words(const std::int32_t* from) const { return LONGHAND_ISA::load(from); }
  template <class T>
  void store(T* to, Vec a) const {
    LONGHAND_ISA::store(to, a);
  }
  template <class T>
  void stream(T* to, Vec a) const {
    LONGHAND_ISA::stream(to, a);
  }
  Vec keep(Vec a) const { return a; }
};

/// Loads and stores the first n lanes of a vector, 0 < n < lanes.
struct Part {
  int n;
  template <class T>
  Vec load(const T* from) const {
    return load_first(from, n);
  }
  template <class T>
  Vec load_or(const T* from, float fill) const {
    return select(first(n), load_first(from, n), Vec(fill));
  }
  IntVec load_words(const std::int32_t* from) const { return load_first(from, n); }
  template <class T>
  void store(T* to, Vec a) const {
    store_first(to, a, n);
  }
  template <class T>
  void stream(T* to, Vec a) const {
    store_first(to, a, n);
  }
  Vec keep(Vec a) const { return select(first(n), a, Vec(0.0)); }  // lanes from n on become 0
};

/// Calls body(i, v) for i = 0, lanes, 2 * lanes, ... below n. v loads and stores a full vector
/// (Whole), or the rest of the n entries (Part).
template <class Body>
[[gnu::always_inline]] inline void for_each_vector(std::int64_t n, Body&& body) {
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) body(i, Whole{});
  if (i < n) body(i, Part{static_cast<int>(n - i)});
}

/// Like for_each_vector(), but calls body(i, v, p) so that the body can add to partial sums (Sums).
/// The entries from i on belong to the vector part[p] of Sums. p is a constant after inlining.
template <class Body>
[[gnu::always_inline]] inline void for_each_part(std::int64_t n, Body&& body) {
  std::int64_t i = 0;
  for (; i + Sums::count <= n; i += Sums::count) {
#pragma GCC unroll 4
    for (int p = 0; p < Sums::vectors; ++p) body(i + p * lanes, Whole{}, p);
  }
#pragma GCC unroll 4
  for (int p = 0; p < Sums::vectors; ++p) {
    const std::int64_t rest = n - i - p * lanes;
    if (rest >= lanes) {
      body(i + p * lanes, Whole{}, p);
    } else if (rest > 0) {
      body(i + p * lanes, Part{static_cast<int>(rest)}, p);
    }
  }
}

/// Sums term(i, v) over the n entries of a row, where v loads a full vector (Whole) or the rest of
/// the row (Part). Returns partial sums. Four independent sums hide the latency of additions. The
/// term of a Part must be 0 in unused lanes.
template <class Term>
[[gnu::always_inline]] inline Sums sum_over(std::int64_t n, Term&& term) {
  constexpr std::int64_t step = 4 * Sums::count;
  Sums a, b, c, d;
  std::int64_t i = 0;
  for (; i + step <= n; i += step) {
    const auto add = [&](Sums & to, std::int64_t at) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (int p = 0; p < Sums::vectors; ++p) to.part[p] += term(at + p * lanes, Whole{});
    };
    add(a, i);
    add(b, i + Sums::count);
    add(c, i + 2 * Sums::count);
    add(d, i + 3 * Sums::count);
  }
  for_each_part(n - i, [&](auto at, auto v, int p) { a.part[p] += term(i + at, v); });
  return (a + b) + (c + d);
}

/// The maximum of the n entries of x. NaNs are ignored. The result is -infinity for n = 0.
template <class T>
[[gnu::always_inline]] inline float largest_of(const T* x, std::int64_t n) {
  constexpr float lowest = -__builtin_inff();
  Vec a(lowest), b(lowest), c(lowest), d(lowest);
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = max(load(x + i), a);
    b = max(load(x + i + lanes), b);
    c = max(load(x + i + 2 * lanes), c);
    d = max(load(x + i + 3 * lanes), d);
  }
  for (; i + lanes <= n; i += lanes) a = max(load(x + i), a);
  if (i < n) b = max(Part{static_cast<int>(n - i)}.load_or(x + i, lowest), b);
  return max(max(max(a, b), max(c, d)));
}

/// Stores results as `how` requires: overwrites the destination or adds to it, with normal or
/// non-temporal stores.
template <class T>
class Output {
 public:
  Output(T* to, Store how) : to_(to), how_(how) {}
  ~Output() {
    if (how_.stream) stream_fence();
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  template <class Lanes>
  [[gnu::always_inline]] void put(std::int64_t i, Lanes part, Vec value) const {
    if (how_.add) value = value + part.load(to_ + i);
    if (how_.stream) {
      part.stream(to_ + i, value);
    } else {
      part.store(to_ + i, value);
    }
  }

 private:
  T* to_;
  Store how_;
};

}  // namespace longhand::cpu::LONGHAND_ISA
