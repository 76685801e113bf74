#pragma once

#include "core/cpu/attention/panel.h"
#include "core/cpu/attention/rows.h"

/// Attention of one query, as in decoding. The keys and values are read once and in place, and each
/// SIMD vector contains neighbouring columns of one row. Packing the keys and values, as for a
/// panel of queries, would take several times as long. Sums are accumulated key by key, in blocks
/// of 64 keys.
namespace longhand::cpu::LONGHAND_ISA::attention {

inline constexpr std::int64_t single_block = panel;

/// Number of floats of scratch: the scaled query, one block of scores, and the partial sums of y.
inline std::int64_t single_scratch(std::int64_t width, std::int64_t value_width) {
  return round_up(width, lanes) + single_block + round_up(value_width, lanes);
}

/// The part of the computation that all rules share: it scales the query, computes the scores of a
/// block of keys, and accumulates y.
template <class T, class Formula>
class SingleRow {
 public:
  SingleRow(const AttentionRows<T>& task, std::int64_t row, float* at)
      : task_(task),
        row_(row),
        position_(task.shape.offset + row),
        width_(task.shape.width),
        value_width_(task.shape.value_width),
        query_(at),
        scores_(query_ + round_up(width_, lanes)),
        outputs_(scores_ + block) {
    const float times = task.scale * Formula::unit * (task.tau ? *task.tau.row(row) : 1.0f);
    const bool late = scaled_late<Exact, Formula>;
    if (late) times_ = times;
    for (std::int64_t c = 0; c < width_; c += lanes) {
      store(query_ + c, Vec(late ? 1.0f : times) * get(task.q.row(row), c, width_));
    }
    clear(outputs_, value_width_);
  }

 protected:
  static constexpr std::int64_t block = single_block;

  /// The keys [begin, end) that the query sees.
  std::int64_t begin() const { return most(0, position_ + 1 - task_.shape.window); }
  std::int64_t end() const {
    return least(task_.shape.keys, position_ + (Formula::own_key ? 1 : 0));
  }

  /// Computes the scores of the query with `count` keys, the first of which is j. The remaining
  /// scores of the block are set to minus infinity.
  void score(std::int64_t j, std::int64_t count) {
    for (std::int64_t r = count; r < block; ++r) scores_[r] = -__builtin_inff();
    std::int64_t r = 0;
    for (; r + 4 <= count; r += 4) {
      const T* keys[4];
      for (int i = 0; i < 4; ++i) {
        keys[i] = task_.k.row(j + r + i);
        fetch(task_.k, j + r + i + ahead, width_);
      }
      dots<4>(keys, query_, width_, scores_ + r);
    }
    for (; r < count; ++r) {
      const T* const key = task_.k.row(j + r);
      dots<1>(&key, query_, width_, scores_ + r);
    }
    if (scaled_late<Exact, Formula>) {
      for (r = 0; r < count; ++r) scores_[r] *= times_;
    }
    if (!task_.shift) return;
    const float own = *task_.shift.row(position_);
    for (r = 0; r < count; ++r) scores_[r] += Formula::unit * (own - *task_.shift.row(j + r));
  }

  void mix_all(std::int64_t j, std::int64_t count) {
    for (std::int64_t c = 0; c < value_width_; c += vectors * lanes) {
      mix_from<vectors>(j, count, c);
    }
  }

  void scale_outputs(float factor) {
    for (std::int64_t c = 0; c < value_width_; c += lanes) {
      store(outputs_ + c, Vec(factor) * load(outputs_ + c));
    }
  }
  /// Writes y, which is `factor` times the accumulated sums.
  void write(float factor) {
    T* const to = task_.y.row(row_);
    for (std::int64_t c = 0; c < value_width_; c += lanes) {
      put(Vec(factor) * load(outputs_ + c), to, c, value_width_, {});
    }
  }

  const AttentionRows<T>& task_;
  std::int64_t row_, position_, width_, value_width_;
  float *query_, *scores_, *outputs_;
  float times_ = 1;

 private:
  static constexpr int vectors = 8;  // maximum number of SIMD vectors of y accumulated together
  static constexpr std::int64_t ahead = 8;

  /// Adds the values of `count` keys, beginning at key j, to y, multiplied by their weights. Only
  /// the n SIMD vectors of y that begin at column c are updated, or fewer at the end of the row.
  template <int n>
  void mix_from(std::int64_t j, std::int64_t count, std::int64_t c) {
    if constexpr (n > 1) {
      if (c + (n - 1) * lanes >= value_width_) return mix_from<n - 1>(j, count, c);
    }
    if (c + n * lanes <= value_width_) {
      mix<n, false>(j, count, c);
    } else {
      mix<n, true>(j, count, c);
    }
  }
  template <int n, bool ragged>
  [[gnu::always_inline]] void mix(std::int64_t j, std::int64_t count, std::int64_t c) {
    Vec sums[n];
    // number of columns in the last of the n SIMD vectors of y
    const int rest = static_cast<int>(value_width_ - c) - (n - 1) * lanes;
    for (int i = 0; i < n; ++i) sums[i] = load(outputs_ + c + i * lanes);
    for (std::int64_t r = 0; r < count; ++r) {
      const T* const value = task_.v.row(j + r) + c;
      if (c == 0) fetch(task_.v, j + r + ahead, value_width_);
      const Vec p(scores_[r]);
      for (int i = 0; i < n; ++i) {
        const bool part = ragged && i == n - 1;
        const Vec v = part ? load_first(value + i * lanes, rest) : load(value + i * lanes);
        sums[i] = fma(p, v, sums[i]);
      }
    }
    for (int i = 0; i < n; ++i) store(outputs_ + c + i * lanes, sums[i]);
  }
};

/// Computes attention of one query in a loop over blocks of keys. The type Query contains a rule's
/// state for this query. It has the members
///   Formula       the formulas of the rule in core/rules/
///   start(...)    sets the initial state
///   weigh(s)      replaces the scores of a block by weights; returns a factor for the sums so far
///   spent()       true if no key that is not yet processed can have a weight
///   share()       the factor that turns the finished sums into y (softmax: 1 / denominator)
///   save(...)     writes what the backward pass needs, if `saves`
template <class T, class Query>
class Single : SingleRow<T, typename Query::Formula> {
  using Base = SingleRow<T, typename Query::Formula>;
  using Base::block, Base::task_, Base::row_, Base::scores_;

 public:
  using Base::Base;

  void run() {
    query_.start(task_, row_);
    const std::int64_t begin = Base::begin(), end = Base::end();
    if constexpr (Query::Formula::leftward) {
      for (std::int64_t to = end; to > begin && !query_.spent();) {
        const std::int64_t j = most(begin, to - block);
        attend(j, to - j);
        to = j;
      }
    } else {
      for (std::int64_t j = begin; j < end; j += block) attend(j, least(block, end - j));
    }
    this->write(query_.share());
    if constexpr (Query::saves) query_.save(task_, row_);
  }

 private:
  void attend(std::int64_t j, std::int64_t count) {
    this->score(j, count);
    const float shrink = query_.weigh(scores_, count);
    if (shrink != 1) this->scale_outputs(shrink);
    this->mix_all(j, count);
  }

  Query query_;
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
