#pragma once

#include <cstdint>

#include "core/cpu/attention/pack.h"
#include "core/cpu/attention/tile.h"

/// Computes which keys of a block each query sees. Products and loops use this to skip the scores
/// of keys that no query sees.
namespace longhand::cpu::LONGHAND_ISA::attention {

struct Range {
  int begin, end;
  bool empty() const { return begin >= end; }
};

/// The visibility of a block of `keys` keys (rows r) for a panel of `queries` queries (columns t).
/// Column t sees row r if t + ahead - window < r <= t + ahead. `ahead` is the position of the first
/// query minus the position of the first key.
struct Sight {
  std::int64_t keys, queries, ahead, window;

  static Range clip(std::int64_t begin, std::int64_t end, std::int64_t limit) {
    return {static_cast<int>(between(begin, 0, limit)), static_cast<int>(between(end, 0, limit))};
  }
  /// Keys that at least one of the queries [t, t + n) sees.
  Range keys_of(std::int64_t t, std::int64_t n) const {
    return clip(t + ahead - window + 1, t + n + ahead, keys);
  }
  /// Keys that all of the queries [t, t + n) see.
  Range keys_of_all(std::int64_t t, std::int64_t n) const {
    return clip(t + n + ahead - window, t + ahead + 1, keys);
  }
  /// Queries that see at least one of the keys [r, r + n).
  Range queries_of(std::int64_t r, std::int64_t n) const {
    return clip(r - ahead, r + n - 1 - ahead + window, queries);
  }
  /// The SIMD vectors of queries in which at least one query sees one of the keys [r, r + n).
  Range vectors_of(std::int64_t r, std::int64_t n) const {
    const Range seen = queries_of(r, n);
    if (seen.empty()) return {0, 0};
    return {seen.begin / lanes, (seen.end + lanes - 1) / lanes};
  }
  bool empty() const { return keys_of(0, queries).empty(); }

  /// Number of neighbouring queries for which one common range of visible keys is computed. It is
  /// at least tile_rows.
  static constexpr std::int64_t unit = lanes < tile_rows ? tile_rows : lanes;

  /// Returns a mask of the queries t to t + lanes - 1, true for queries that see key r. Kernels
  /// process keys in pairs or tiles, so r may be beyond the last key. No query sees such a key,
  /// even if there is no causal mask.
  Mask sees(std::int64_t r, std::int64_t t) const {
    const IntVec place = lane_indices();
    const auto limit = [](std::int64_t x) {
      return IntVec(static_cast<std::int32_t>(between(x, -lanes, 2 * lanes)));
    };
    const std::int64_t first = r < keys ? r - ahead - t : 2 * lanes;
    return ~(place < limit(first)) & (place < limit(r - ahead + window - t));
  }
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
