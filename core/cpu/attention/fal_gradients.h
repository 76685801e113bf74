#pragma once

#include "core/cpu/attention/pack.h"
#include "core/cpu/attention/rows.h"

/// The backward pass of First-After-Last, where each query has chosen one earlier key, its match.
/// First, the queries that chose each key are listed, ordered by head and position. Then a loop
/// over the keys writes each row of the gradients once, when its sum is complete.
namespace longhand::cpu::LONGHAND_ISA::attention {

template <class T>
class FalGradientWork {
 public:
  FalGradientWork(const FalGradients<T>& task, std::int64_t begin, std::int64_t end, float* scratch)
      : task_(task),
        width_(task.shape.width),
        value_width_(task.shape.value_width),
        begin_(begin),
        end_(end),
        key_sums_(scratch),
        value_sums_(key_sums_ + round_up(width_, lanes)),
        starts_(reinterpret_cast<std::int32_t*>(value_sums_ + round_up(value_width_, lanes))),
        readers_(starts_ + (end - begin + 3)) {}

  static std::int64_t scratch(std::int64_t width, std::int64_t value_width, std::int64_t range,
                              std::int64_t readers) {
    return round_up(width, lanes) + round_up(value_width, lanes) + range + 3 + readers;
  }

  void run() {
    list();
    // The loop begins one key before the range of keys, because dv of key j sums over the queries
    // that chose key j - 1.
    const std::int64_t all = starts_[end_ - begin_ + 1];
    for (std::int64_t m = begin_ - 1; m < end_; ++m) {
      const std::int64_t slot = m - begin_ + 1;
      if (starts_[slot] < all) fetch_after(m);
      write_key(m, readers_ + starts_[slot], starts_[slot + 1] - starts_[slot]);
    }
  }

 private:
  std::int64_t head_of(std::int32_t number) const {
    return task_.heads == 1 ? 0 : number / task_.shape.queries;
  }

  /// Lists the queries that chose each key. The entries starts_[s] to starts_[s + 1] - 1 of
  /// readers_ are the queries that chose key begin_ - 1 + s. A query is stored as the number head *
  /// (queries per head) + row. Also sets dq of queries without a match to 0.
  void list() {
    const SegmentShape& shape = task_.shape;
    const std::int64_t slots = end_ - begin_ + 1;
    for (std::int64_t s = 0; s < slots + 2; ++s) starts_[s] = 0;
    // A query always chooses an earlier key. Queries before the range of keys therefore cannot have
    // chosen one of its keys.
    const std::int64_t first = most(0, begin_ - shape.offset);
    const auto each = [&](auto&& body) {
      for (std::int64_t h = 0; h < task_.heads; ++h) {
        for (std::int64_t t = first; t < shape.queries; ++t) {
          const std::int64_t m = task_.match.row(t)[h], slot = m - begin_ + 1;
          if (m < 0 || slot < 0 || slot >= slots) continue;
          body(slot, static_cast<std::int32_t>(h * shape.queries + t));
        }
      }
    };
    each([&](std::int64_t slot, std::int32_t) { ++starts_[slot + 2]; });
    for (std::int64_t s = 2; s < slots + 2; ++s) starts_[s] += starts_[s - 1];
    each([&](std::int64_t slot, std::int32_t number) { readers_[starts_[slot + 1]++] = number; });

    if (!task_.dq || task_.to_dq.add) return;
    for (std::int64_t t = first; t < least(shape.queries, end_ - shape.offset); ++t) {
      for (std::int64_t h = 0; h < task_.heads; ++h) {
        if (task_.match.row(t)[h] >= 0) continue;
        T* const dq = task_.dq.row(t) + h * width_;
        for (std::int64_t c = 0; c < width_; c += lanes) {
          put(Vec(0.0f), dq, c, width_, task_.to_dq);
        }
      }
    }
  }

  /// Prefetches the rows of the key and of the query that are `ahead` positions after key m. Most
  /// queries choose a key close to them, so the loop over the keys needs both soon. This
  /// function must be inlined: the compiler removes calls of a function that only prefetches,
  /// because it assumes that the function has no effect.
  [[gnu::always_inline]] void fetch_after(std::int64_t m) const {
    constexpr std::int64_t ahead = 8;
    fetch(task_.k, m + ahead, width_);
    fetch(task_.v, m + ahead, value_width_);
    fetch(task_.q, m + ahead - task_.shape.offset, width_);
    fetch(task_.dy, m + ahead - task_.shape.offset, value_width_);
    if (task_.dq && !task_.to_dq.stream) fetch(task_.dq, m + ahead - task_.shape.offset, width_);
    if (task_.dk && !task_.to_dk.stream) fetch(task_.dk, m + ahead, width_);
    if (task_.dv && !task_.to_dv.stream) fetch(task_.dv, m + ahead, value_width_);
  }

  /// Writes the gradients that depend on the queries that chose key m: dk_m, dv_(m+1) and the dq of
  /// these queries. (A query that chose key m reads v_(m+1).) If key m or m + 1 is outside the
  /// range of keys, its gradients are not written, because another range contains the key.
  void write_key(std::int64_t m, const std::int32_t* numbers, std::int64_t count) {
    // The readers of a key are the queries that chose this key. Few keys have more than three
    // readers. The branch predictor cannot predict the number of readers, so only one branch
    // depends on this number.
    bool first = true;
    for (; count > 3; count -= 4, numbers += 4, first = false) {
      readers<4>(m, numbers, first, count == 4);
      if (count == 4) return;
    }
    switch (count) {
      case 0:
        return readers<0>(m, numbers, first, true);
      case 1:
        return readers<1>(m, numbers, first, true);
      case 2:
        return readers<2>(m, numbers, first, true);
      default:
        return readers<3>(m, numbers, first, true);
    }
  }

  /// Adds the terms of the next n queries that chose key m to the sums for dk_m and dv_(m+1), and
  /// writes dq of these queries. The last call for a key writes its rows of dk and dv.
  template <int n>
  void readers(std::int64_t m, const std::int32_t* numbers, bool first, bool last) {
    const T *q[n + 1], *dy[n + 1];
    float g[n + 1], scores[n + 1];
#pragma GCC unroll 4
    for (int r = 0; r < n; ++r) {
      const std::int64_t h = head_of(numbers[r]), t = numbers[r] - h * task_.shape.queries;
      q[r] = task_.q.row(t) + h * width_;
      dy[r] = task_.dy.row(t) + h * value_width_;
    }
    if (m >= begin_) {
      if constexpr (n > 0) dots<n>(dy, task_.v.row(m + 1), value_width_, g);
      for (int r = 0; task_.dq && r < n; ++r) {
        const std::int64_t h = head_of(numbers[r]), t = numbers[r] - h * task_.shape.queries;
        const T* const k = task_.k.row(m);
        T* const dq = task_.dq.row(t) + h * width_;
        for (std::int64_t c = 0; c < width_; c += lanes) {
          put(Vec(g[r]) * get(k, c, width_), dq, c, width_, task_.to_dq);
        }
      }
      if (task_.dk) {
        add_up<n>(g, q, first, last, key_sums_, task_.dk.row(m), width_, task_.to_dk);
      }
    }
    if (m + 1 < end_ && task_.dv) {
      if constexpr (n > 0) dots<n>(q, task_.k.row(m), width_, scores);
      add_up<n>(scores, dy, first, last, value_sums_, task_.dv.row(m + 1), value_width_,
                task_.to_dv);
    }
  }

  /// Adds the sum of times[r] x[r][c] over the n rows r to sums[c], for each column c. The first
  /// call for a key starts from 0. The last call stores the total in y instead of `sums`.
  template <int n>
  static void add_up(const float* times, const T* const* x, bool first, bool last, float* sums,
                     T* y, std::int64_t width, Store how) {
    for (std::int64_t c = 0; c < width; c += lanes) {
      Vec total = first ? Vec(0.0f) : load(sums + c);
#pragma GCC unroll 4
      for (int r = 0; r < n; ++r) total = fma(Vec(times[r]), get(x[r], c, width), total);
      if (last) {
        put(total, y, c, width, how);
      } else {
        store(sums + c, total);
      }
    }
  }

  const FalGradients<T>& task_;
  std::int64_t width_, value_width_, begin_, end_;
  float *key_sums_, *value_sums_;
  std::int32_t *starts_, *readers_;
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
