#pragma once

#include "core/cpu/gemm/pack.h"
#include "core/cpu/gemm/tile_registers.h"
#include "core/cpu/halves.h"

/// Matrix products with tile registers (tile_registers.h).
///
/// A granule is a step of 32 elements (16 units) along k. In a panel of 32 rows of A, a granule
/// consists of two tiles, each with 16 rows of 32 bf16 values. In a panel of 32 columns of B, a
/// granule consists of two tiles, each with 16 columns of 16 pairs along k. A format may split each
/// element x into two parts:
///   high = bf16(x);  low = bf16(x - high);  |x - high - low| <= 2^-16 |x|.
/// Then each granule consists of the tiles of the high parts, followed by those of the low parts.
///
/// Four tile registers contain the sums of 32 x 32 entries of c, two contain a granule of A, and
/// two contain a granule of B. Each loaded tile is used twice, so 4 products (16 cycles each) need
/// 4 loads (8 cycles each).
namespace longhand::cpu::LONGHAND_ISA {

inline constexpr int tile_panel = 32;     // number of rows of A, or columns of B, in a panel
inline constexpr int granule_units = 16;  // number of units in 32 elements along k
inline constexpr int tile_bytes = 1024;

/// Writes one row of a tile of A: the next n elements of a row of A along k. A row of a tile has 32
/// entries. If n is smaller, the remaining entries are 0. If Parts is 2, the low parts of the
/// elements are stored `part_stride` entries after the high parts.
template <int Parts, class T>
void put_row(std::uint16_t* to, std::int64_t part_stride, const T* from, std::int64_t n) {
  if constexpr (Parts == 1 && std::is_same_v<T, bf16>) {
    if (n >= 32) {
      __builtin_memcpy(to, from, tile_row_bytes);
      return;
    }
  }
  for (int at = 0; at < 32; at += lanes) {
    const std::int64_t left = n - at;
    const Vec x = left >= lanes ? load(from + at)
                  : left > 0    ? load_first(from + at, static_cast<int>(left))
                                : Vec(0.0);
    if constexpr (Parts == 2) {
      const SplitLanes parts = split(x);
      put_halves(to + at, parts.high);
      put_halves(to + part_stride + at, parts.low);
    } else {
      put_halves(to + at, x);
    }
  }
}

/// Loads the next `lanes` elements. If fewer elements are left, the other lanes are 0.
template <class T>
[[gnu::always_inline]] inline Vec load_across(const T* from, std::int64_t left) {
  return left >= lanes ? load(from)
         : left > 0    ? load_first(from, static_cast<int>(left))
                       : Vec(0.0);
}

/// Converts the elements k to k + 31 of 32 rows (or columns) to floats. Row (or column) first + i
/// becomes row i of `block`. Entries beyond the end of the operand are 0.
template <class T>
void gather_granule(const PackJob& job, std::int64_t first, std::int64_t k,
                    float (&block)[32][32]) {
  const T* source = static_cast<const T*>(job.data);
  const std::int64_t rows = job.count - first, steps = job.k_count - k;
  if (job.k_contiguous) {
    for (int i = 0; i < 32; ++i) {
      const T* from = source + (job.first + first + i) * job.ld + job.k_first + k;
      for (int at = 0; at < 32; at += lanes) {
        store(&block[i][at], i < rows ? load_across(from + at, steps - at) : Vec(0.0));
      }
    }
  } else {
    float turned[32][32];
    for (int p = 0; p < 32; ++p) {
      const T* from = source + (job.k_first + k + p) * job.ld + job.first + first;
      for (int at = 0; at < 32; at += lanes) {
        store(&turned[p][at], p < steps ? load_across(from + at, rows - at) : Vec(0.0));
      }
    }
    for (int i = 0; i < 32; i += lanes) {
      for (int p = 0; p < 32; p += lanes) {
        FloatLanes square[lanes];
        for (int l = 0; l < lanes; ++l) square[l] = load(&turned[p + l][i]).v;
        transpose(square);
        for (int l = 0; l < lanes; ++l) store(&block[i + l][p], Vec(square[l]));
      }
    }
  }
}

/// Prefetch distance: while a row of A is packed, the row this many rows later is prefetched. A
/// single row is too short for the processor's own prefetcher.
constexpr std::int64_t rows_ahead = 8;

/// Packs panels of A in the order [granule][high or low part][2 tiles][16 rows][32 bf16]. A granule
/// is a step of 32 elements along k. If rows of A are contiguous along k, they are packed one by
/// one.
template <int Parts, class T>
void pack_tiles_a_of(const PackJob& job) {
  auto* out = static_cast<std::uint16_t*>(job.out);
  constexpr std::int64_t part = 2 * tile_bytes / 2;  // number of bf16 values in two tiles
  const std::int64_t panel = (job.k_count + 31) / 32 * Parts * part;
  for (std::int64_t first = 0; first < job.count; first += tile_panel, out += panel) {
    if (!job.k_contiguous) {
      std::uint16_t* to = out;
      for (std::int64_t k = 0; k < job.k_count; k += 32, to += Parts * part) {
        float block[32][32];
        gather_granule<T>(job, first, k, block);
        for (int i = 0; i < 32; ++i) put_row<Parts>(to + i * 32, part, block[i], 32);
      }
      continue;
    }
    for (int i = 0; i < tile_panel; ++i) {
      const T* row =
          static_cast<const T*>(job.data) + (job.first + first + i) * job.ld + job.k_first;
      const std::int64_t count = first + i < job.count ? job.k_count : 0;
      std::uint16_t* to = out + i * 32;
      for (std::int64_t k = 0; k < job.k_count; k += 32, to += Parts * part) {
        const T* later = row + rows_ahead * job.ld + k;
        for (int at = 0; at < 32; at += 64 / sizeof(T)) __builtin_prefetch(later + at);
        put_row<Parts>(to, part, row + k, count - k);
      }
    }
  }
}
template <int Parts>
void pack_tiles_a(const PackJob& job) {
  job.is_bf16 ? pack_tiles_a_of<Parts, bf16>(job) : pack_tiles_a_of<Parts, float>(job);
}

/// Packs panels of B in the order [granule][high or low part][2 tiles][16 pairs][16 columns]. A
/// granule is a step of 32 elements along k. A pair consists of two bf16 values adjacent along k.
template <int Parts>
void pack_tiles_b(const PackJob& job) {
  auto* out = static_cast<std::uint32_t*>(job.out);
  constexpr std::int64_t part = 2 * tile_bytes / 4;  // number of 32-bit words in two tiles
  for (std::int64_t first = 0; first < job.count; first += tile_panel) {
    for (std::int64_t k = 0; k < job.k_count; k += 32, out += Parts * part) {
      float turned[32][32];  // [k][column]
      PackJob across = job;
      // Exchanges the roles of columns and k, so that the result is transposed.
      across.k_contiguous = !job.k_contiguous;
      across.first = job.k_first;
      across.count = job.k_count;
      across.k_first = job.first;
      across.k_count = job.count;
      job.is_bf16 ? gather_granule<bf16>(across, k, first, turned)
                  : gather_granule<float>(across, k, first, turned);
      for (int p = 0; p < 16; ++p) {
        for (int at = 0; at < 32; at += lanes) {
          const Vec x = load(&turned[2 * p][at]), next = load(&turned[2 * p + 1][at]);
          std::uint32_t* to = out + (at / 16) * 256 + p * 16 + at % 16;
          if constexpr (Parts == 2) {
            const SplitLanes a = split(x), b = split(next);
            const WordLanes high = pairs_of(a.high, b.high), low = pairs_of(a.low, b.low);
            __builtin_memcpy(to, &high, sizeof high);
            __builtin_memcpy(to + part, &low, sizeof low);
          } else {
            const WordLanes pairs = pairs_of(rounded(x), rounded(next));
            __builtin_memcpy(to, &pairs, sizeof pairs);
          }
        }
      }
    }
  }
}

/// Computes c = alpha sums + beta c for the 32 rows from i on and the 32 columns from j on, as far
/// as c has these rows and columns.
inline void put_sums(const BlockProduct& p, const float (&sums)[32][32], std::int64_t i,
                     std::int64_t j) {
  const Vec alpha(p.alpha), beta(p.beta);
  const std::int64_t rows = p.rows - i < 32 ? p.rows - i : 32;
  const std::int64_t cols = p.cols - j < 32 ? p.cols - j : 32;
  for (std::int64_t r = 0; r < rows; ++r) {
    float* c = p.c + (i + r) * p.ldc + j;
    for (std::int64_t at = 0; at < cols; at += lanes) {
      const int n = cols - at < lanes ? static_cast<int>(cols - at) : lanes;
      Vec value = alpha * load(&sums[r][at]);
      if (p.stream && n == lanes) {
        stream(c + at, value);
      } else if (n == lanes) {
        if (p.beta != 0) value = fma(beta, load(c + at), value);
        store(c + at, value);
      } else {
        if (p.beta != 0) value = fma(beta, load_first(c + at, n), value);
        store_first(c + at, value, n);
      }
    }
  }
}

template <int T, class Tiles>
[[gnu::always_inline]] inline void load_pair(Tiles& tiles, const void* at, std::int64_t second,
                                             std::int64_t row_stride) {
  tiles.template load<T>(at, row_stride);
  tiles.template load<T + 1>(static_cast<const char*>(at) + second, row_stride);
}

/// Prefetches `Lines` cache lines of B with each tile product. B is in the second-level cache, so
/// the loads of tiles would have to wait without prefetching.
template <int Lines>
struct FetchAhead {
  const char* line;
  [[gnu::always_inline]] void some() {
    for (int i = 0; i < Lines; ++i, line += 64) __builtin_prefetch(line);
  }
};

/// Adds four products of tiles to the sums. Tile registers 0 to 3 contain the sums, 4 and 5 contain
/// A, and 6 and 7 contain B. Each tile is loaded as late as possible, while products of the
/// previous tiles are still running.
template <bool LoadA, bool LoadB, class Tiles, class Fetch>
[[gnu::always_inline]] inline void four_products(Tiles& tiles, const char* a, const char* b,
                                                 Fetch& fetch) {
  if constexpr (LoadB) tiles.template load<6>(b, tile_row_bytes);
  if constexpr (LoadA) tiles.template load<4>(a, tile_row_bytes);
  tiles.template multiply_add<0, 4, 6>();
  fetch.some();
  if constexpr (LoadB) tiles.template load<7>(b + tile_bytes, tile_row_bytes);
  tiles.template multiply_add<1, 4, 7>();
  fetch.some();
  if constexpr (LoadA) tiles.template load<5>(a + tile_bytes, tile_row_bytes);
  tiles.template multiply_add<2, 5, 6>();
  fetch.some();
  tiles.template multiply_add<3, 5, 7>();
  fetch.some();
}

/// Computes a BlockProduct with tile registers. If Parts is 2, each element of a and b is split
/// into a high and a low part, and a product of elements is computed as
///   a_high b_high + a_high b_low + a_low b_high.
/// The omitted term a_low b_low is less than 2^-16 |a| |b|.
template <class Tiles, int Parts>
void multiply_tiles(const BlockProduct& p) {
  Tiles tiles;
  tiles.configure();
  const std::int64_t granules = p.units / granule_units;
  constexpr std::int64_t part = 2 * tile_bytes, step = Parts * part;
  alignas(64) float apart[32][32];
  const char* a_panel = static_cast<const char*>(p.a);
  for (std::int64_t i = 0; i < p.rows; i += tile_panel, a_panel += granules * step) {
    const char* b = static_cast<const char*>(p.b);
    for (std::int64_t j = 0; j < p.cols; j += tile_panel) {
      // A full tile is accumulated in c itself if alpha is 1, beta is 0 or 1, and c is written with
      // normal stores.
      const bool in_c = !p.stream && p.rows - i >= tile_panel && p.cols - j >= tile_panel &&
                        p.alpha == 1 && (p.beta == 0 || p.beta == 1);
      float* c = in_c ? p.c + i * p.ldc + j : &apart[0][0];
      const std::int64_t ldc = in_c ? p.ldc : 32, row = ldc * 4;
      if (in_c && p.beta == 1) {
        load_pair<0>(tiles, c, 64, row);
        load_pair<2>(tiles, c + 16 * ldc, 64, row);
      } else {
        tiles.template zero<0>();
        tiles.template zero<1>();
        tiles.template zero<2>();
        tiles.template zero<3>();
      }
      const char* a = a_panel;
      for (std::int64_t g = 0; g < granules; ++g, a += step, b += step) {
        // With high and low parts, a granule of B has 64 cache lines and needs 12 tile products, so
        // each product prefetches 6 cache lines of a later granule. Without such parts, it has 32
        // cache lines and needs 4 tile products, so each product prefetches 8.
        FetchAhead<Parts == 2 ? 6 : 8> fetch{b + 2 * step};
        if constexpr (Parts == 2) {
          four_products<true, true>(tiles, a, b + part, fetch);   // high part of a, low part of b
          four_products<false, true>(tiles, a, b, fetch);         // high parts of a and b
          four_products<true, false>(tiles, a + part, b, fetch);  // low part of a, high part of b
        } else {
          four_products<true, true>(tiles, a, b, fetch);
        }
      }
      tiles.template store<0>(c, row);
      tiles.template store<1>(c + 16, row);
      tiles.template store<2>(c + 16 * ldc, row);
      tiles.template store<3>(c + 16 * ldc + 16, row);
      if (!in_c) put_sums(p, apart, i, j);
    }
  }
  tiles.release();
  if (p.stream) stream_fence();
}

/// In a panel of A, one unit of all 32 rows takes 128 bytes, or 256 bytes with high and low parts.
/// A block of 256 / Parts units thus takes 32 KiB. The rest of the first-level cache, which has 48
/// KiB in processors with tiles, is used to read B. The second-level cache of 2 MiB contains 256
/// rows of such a block of A, 512 columns of B and 256 x 512 sums. Each of these takes at most 512
/// KiB. With fewer rows, tiles would wait for B from the third-level cache.
template <class Tiles, int Parts>
inline constexpr PanelFormat tile_format{.mr = tile_panel,
                                         .nr = tile_panel,
                                         .k_per_unit = 2,
                                         .granule = granule_units,
                                         .unit_bytes = 4 * Parts,
                                         .block_units = 256 / Parts,
                                         .block_rows = 256,
                                         .most_task_cols = 512,
                                         .in_place_f32 = false,
                                         .in_place_bf16_rows = false,
                                         .pack_a = pack_tiles_a<Parts>,
                                         .pack_b = pack_tiles_b<Parts>,
                                         .multiply = multiply_tiles<Tiles, Parts>};

}  // namespace longhand::cpu::LONGHAND_ISA
