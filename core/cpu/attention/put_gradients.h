#pragma once

#include "core/cpu/attention/gradient_space.h"
#include "core/cpu/attention/sight.h"

namespace longhand::cpu::LONGHAND_ISA::attention {

/// Extends the range `seen` of keys by tile_rows keys at both ends, because products may also read
/// P and dS of the added keys. Both ends are then rounded outwards to even numbers, because P and
/// dS are stored for two keys at a time.
inline Range widened(Range seen, std::int64_t keys) {
  const Range wide =
      Sight::clip(seen.begin - tile_rows, seen.end + tile_rows, round_up(keys, tile_rows));
  return {wide.begin & ~1, (wide.end + 1) & ~1};
}

/// Stores P (p0 and p1) and dS (d0 and d1) of the keys r and r + 1, for the SIMD vector of queries
/// that begins at query t, in the layouts that the products read.
template <class Product, bool make_p, bool make_ds>
[[gnu::always_inline]] inline void put_gradients(const GradientSpace<Product>& space, int r,
                                                 std::int64_t t, Vec p0, Vec p1, Vec d0, Vec d1) {
  if constexpr (make_p) {
    if (!make_ds || !Product::rounds) {
      store(space.p + r * panel + t, p0);
      store(space.p + (r + 1) * panel + t, p1);
    }
  }
  if constexpr (Product::depth == 1) {
    if constexpr (Product::rounds && make_p) {
      store(space.p_rows + r * panel + t, Product::rounded(p0));
      store(space.p_rows + (r + 1) * panel + t, Product::rounded(p1));
    }
    if constexpr (make_ds) {
      store(space.ds + r * panel + t, Product::rounded(d0));
      store(space.ds + (r + 1) * panel + t, Product::rounded(d1));
    }
  } else {
    constexpr int row = panel / 2;
    if constexpr (make_p) {
      float* const at = space.p_rows + r * row + t / 2;
      Product::put_rows(at, p0, at + row, p1);
    }
    if constexpr (make_ds) {
      float* const at = space.ds_rows + r * row + t / 2;
      Product::put_rows(at, d0, at + row, d1);
      Product::put_across(space.ds_keys + r / 2 * panel + t, d0, d1);
    }
  }
}

}  // namespace longhand::cpu::LONGHAND_ISA::attention
