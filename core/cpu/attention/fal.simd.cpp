#include "core/cpu/attention/fal_gradients.h"
#include "core/cpu/attention/kernels.h"
#include "core/cpu/attention/panel.h"
#include "core/cpu/attention/rows.h"
#include "core/cpu/isa.h"

/// First-After-Last. The match of query i is the last key j < i with q_i . k_j > 0. Most matches
/// are near their query, so each query first tests the 8 keys before it (`reach`), four keys at a
/// time. If a query has no match among these keys, its panel of queries also searches the earlier
/// keys. This search computes the scores of the panel with one block of keys at a time, in tiles.
/// The queries of a SIMD vector are skipped when all of them have a match. Even if no query has a
/// match, the search costs little more than a matrix product. The order in which the terms of a
/// score are summed depends only on the distance between query and key. A match is therefore
/// independent of the division of work, of caches and of the number of threads.
namespace longhand::cpu {
namespace LONGHAND_ISA::attention {
namespace {

constexpr std::int64_t reach = 8;
constexpr std::int64_t ahead = 8;  // number of rows between a prefetched row and the current row

struct Space {
  float *keys, *turned, *scores, *ones, *found;
  std::int32_t* match;
  std::int64_t key_stride, floats;

  Space(std::int64_t width, float* at) {
    key_stride = packed_width(width);
    ScratchParts take{at};
    keys = take(block * key_stride);
    turned = take(panel * width);
    scores = take(block * panel);
    ones = take(panel);
    found = take(panel);
    match = reinterpret_cast<std::int32_t*>(take(panel));
    floats = take.floats;
  }
};

template <class T>
class Search {
 public:
  Search(const FalRows<T>& task, std::int64_t row, std::int64_t end, float* scratch)
      : task_(task),
        width_(task.shape.width),
        row_(row),
        n_(least(panel, end - row)),
        position_(task.shape.offset + row),
        space_(width_, scratch) {}

  void run() {
    if (!near()) far();
    write();
  }

 private:
  /// For each query, tests the 8 keys before it (`reach`). Returns false if a query without a match
  /// has keys before these 8 keys, which must then be tested, too.
  bool near() {
    bool all = true;
    for (std::int64_t t = 0; t < n_; ++t) {
      const std::int64_t p = position_ + t, stop = most(0, p - reach);
      const T* const q = task_.q.row(row_ + t);
      fetch(task_.q, row_ + t + ahead, width_);
      fetch(task_.k, p + ahead, width_);
      fetch(task_.v, p + ahead, task_.shape.value_width);
      space_.match[t] = -1;
      space_.found[t] = 0;
      std::int64_t last = p - 1;
      for (; last >= stop; last -= 4) {
        const T* keys[4];
        for (int i = 0; i < 4; ++i) keys[i] = task_.k.row(most(0, last - i));
        float s[4];
        dots<4>(keys, q, width_, s);
        unsigned hits = 0;
        for (int i = 0; i < 4; ++i) hits |= static_cast<unsigned>(s[i] > 0) << i;
        if (hits == 0) continue;
        const int hit = __builtin_ctz(hits);
        space_.match[t] = static_cast<std::int32_t>(last - hit);
        space_.found[t] = s[hit];
        break;
      }
      all = all && (last >= stop || stop == 0);
    }
    for (std::int64_t t = n_; t < round_up(n_, lanes); ++t) space_.match[t] = 0;
    return all;
  }

  void far() {
    for (std::int64_t t = 0; t < panel; t += lanes) store(space_.ones + t, Vec(1.0f));
    pack_transposed<Exact>(Source<T>{{task_.q.row(row_), task_.q.stride}, n_, width_}, n_, width_,
                           space_.ones, space_.turned);
    std::int64_t end = position_ + n_ - 1 - reach;
    while (end > 0 && !done()) {
      const std::int64_t begin = most(0, end - block);
      scan(begin, end);
      end = begin;
    }
  }

  /// True if one of the queries t .. t + lanes - 1 has no match yet.
  bool open(std::int64_t t) const { return t < n_ && any(load(space_.match + t) < IntVec(0)); }
  bool done() const {
    for (std::int64_t t = 0; t < n_; t += lanes) {
      if (open(t)) return false;
    }
    return true;
  }

  void scan(std::int64_t begin, std::int64_t end) {
    const std::int64_t count = end - begin;
    pack_left<Exact>(Source<T>{{task_.k.row(begin), task_.k.stride}, count, width_}, count, width_,
                     space_.keys, space_.key_stride);
    // Each query skips the last `reach` keys before it, because near() has already tested them.
    const Sight sight{count, n_, position_ - 1 - reach - begin, std::int64_t{1} << 40};
    for (std::int64_t t = 0; t < n_; t += 2 * lanes) {
      for (std::int64_t r = (count - 1) / tile_rows * tile_rows; r >= 0; r -= tile_rows) {
        const bool low = open(t), high = open(t + lanes);
        if (!low && !high) break;
        const auto sees = [&](std::int64_t at) { return sight.keys_of(at, lanes).end > r; };
        const bool first = low && sees(t), second = high && sees(t + lanes);
        if (!first && !second) continue;
        tile_of(r, first ? t : t + lanes, first && second ? 2 : 1);
        const std::int64_t stop = least(r + tile_rows, count);
        if (first) take(r, stop, t, begin, sight);
        if (second) take(r, stop, t + lanes, begin, sight);
      }
    }
  }

  void tile_of(std::int64_t r, std::int64_t t, int vectors) {
    for (std::int64_t k = 0; k < width_; k += depth_piece) {
      row_tile<Exact>({space_.keys + r * space_.key_stride + k, space_.key_stride, 1},
                      space_.turned + k * panel + t, panel, least(depth_piece, width_ - k),
                      space_.scores + r * panel + t, panel, vectors, k > 0);
    }
  }

  /// Processes a vector of queries, t to t + lanes - 1, that may have a match among the keys
  /// [r, end) of a block. For each query without a match, stores the last of these keys with a
  /// positive score as its match, if there is such a key.
  void take(std::int64_t r, std::int64_t end, std::int64_t t, std::int64_t begin,
            const Sight& sight) {
    const float* const scores = space_.scores + t;
    IntVec match = load(space_.match + t);
    Vec highest = load(scores + r * panel);
    for (std::int64_t j = r + 1; j < end; ++j) highest = max(load(scores + j * panel), highest);
    // Nothing remains to be done if no score of a query without a match is positive. `highest` is
    // the maximum of each query's scores. If it is NaN, a score may still be positive, so the keys
    // are tested one by one.
    if (!any(~(highest <= Vec(0.0f)) & (match < IntVec(0)))) return;
    Vec found = load(space_.found + t);
    const std::int64_t all = sight.keys_of_all(t, lanes).end;
    for (std::int64_t j = end - 1; j >= r; --j) {
      const Vec s = load(scores + j * panel);
      Mask hit = (s > Vec(0.0f)) & (match < IntVec(0));
      if (j >= all) hit = hit & sight.sees(j, t);
      match = select(hit, IntVec(static_cast<std::int32_t>(begin + j)), match);
      found = select(hit, s, found);
    }
    store(space_.match + t, match);
    store(space_.found + t, found);
  }

  void write() {
    const std::int64_t width = task_.shape.value_width;
    const Store how{.stream = task_.stream};
    for (std::int64_t t = 0; t < n_; ++t) {
      const std::int64_t m = space_.match[t];
      *task_.match.row(row_ + t) = space_.match[t];
      T* const y = task_.y.row(row_ + t);
      const Vec score(space_.found[t]);
      if (m < 0) {
        for (std::int64_t c = 0; c < width; c += lanes) put(Vec(0.0f), y, c, width, how);
        continue;
      }
      const T* const v = task_.v.row(m + 1);
      for (std::int64_t c = 0; c < width; c += lanes) {
        put(score * get(v, c, width), y, c, width, how);
      }
    }
  }

  const FalRows<T>& task_;
  std::int64_t width_, row_, n_, position_;
  Space space_;
};

std::int64_t scratch(std::int64_t width) { return Space(width, nullptr).floats; }

template <class T>
void rows(const FalRows<T>& task, std::int64_t begin, std::int64_t end, float* at) {
  for (std::int64_t row = begin; row < end; row += panel) Search<T>(task, row, end, at).run();
  if (task.stream) stream_fence();
}

template <class T>
void gradients(const FalGradients<T>& task, std::int64_t begin, std::int64_t end, float* at) {
  FalGradientWork<T>(task, begin, end, at).run();
  if (task.to_dq.stream || task.to_dk.stream || task.to_dv.stream) stream_fence();
}

template <class T>
constexpr FalKernels<T> table{scratch, rows<T>, FalGradientWork<T>::scratch, gradients<T>};

}  // namespace
}  // namespace LONGHAND_ISA::attention

template <>
const FalKernels<float>& kernels<FalKernels<float>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::table<float>;
}
template <>
const FalKernels<bf16>& kernels<FalKernels<bf16>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::table<bf16>;
}

}  // namespace longhand::cpu
