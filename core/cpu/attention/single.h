#pragma once

#include "core/cpu/attention/panel.h"
#include "core/cpu/attention/rows.h"
#include "core/rules/entmax.h"
#include "core/rules/softmax.h"
#include "core/rules/stick_breaking.h"
#include "core/rules/tra.h"

/// Attention of one query, as in decoding. The keys and values are read once, in place, with
/// vectors along the head's width. Packing them for a panel of queries would cost several times as
/// much. Sums are accumulated key by key. The running maximum is updated once per block of 64 keys.
namespace longhand::cpu::LONGHAND_ISA::attention {

inline constexpr std::int64_t single_block = panel;

/// Number of floats of scratch: the scaled query, one block of scores, and the partial sums of y.
inline std::int64_t single_scratch(std::int64_t width, std::int64_t value_width) {
  return round_up(width, lanes) + single_block + round_up(value_width, lanes);
}

template <class T, class Formula>
class Single {
 public:
  Single(const AttentionRows<T>& task, std::int64_t row, float* at)
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
    start(Formula());
  }

  void run() {
    const std::int64_t begin = most(0, position_ + 1 - task_.shape.window);
    const std::int64_t end = position_ + (Formula::own_key ? 1 : 0);
    walk(Formula(), begin, end);
    const Vec factor(share(Formula()));
    T* const to = task_.y.row(row_);
    for (std::int64_t c = 0; c < value_width_; c += lanes) {
      put(factor * load(outputs_ + c), to, c, value_width_, {});
    }
    save(Formula());
  }

 private:
  static constexpr std::int64_t block = single_block;
  static constexpr int vectors = 8;  // maximum number of vectors of columns summed together
  static constexpr std::int64_t ahead = 8;

  // The steps below are overloaded for the rules. The first argument is the formula of the rule.
  void start(rules::Stick) {}
  void start(rules::Entmax) {}
  void start(rules::Tra) { pull_ = log2_of_e * *task_.pull.row(row_); }
  void start(rules::Softmax) {
    if (!task_.sink) return;
    maximum_ = *task_.sink * log2_of_e > maximum_ ? *task_.sink * log2_of_e : maximum_;
    sum_ = 1;
  }

  void walk(rules::Softmax rule, std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = begin; j < end; j += block) take(rule, j, least(block, end - j));
  }
  void walk(rules::Tra rule, std::int64_t begin, std::int64_t end) {
    while (end > begin) {
      const std::int64_t j = most(begin, end - block);
      take(rule, j, end - j);
      end = j;
    }
  }
  void walk(rules::Stick rule, std::int64_t begin, std::int64_t end) {
    while (end > begin && !(left_ < rules::Stick::spent)) {
      const std::int64_t j = most(begin, end - block);
      take(rule, j, end - j);
      end = j;
    }
  }
  /// Computes all scores first and stores them in scratch after the outputs. Then processes only
  /// the blocks in which a key has a weight.
  void walk(rules::Entmax, std::int64_t begin, std::int64_t end) {
    float* const all = outputs_ + round_up(value_width_, lanes);
    Vec top(-1e38f);
    for (std::int64_t j = begin; j < end; j += block) {
      scores_ = all + (j - begin);
      score(j, least(block, end - j));
      for (std::int64_t r = 0; r < block; r += lanes) top = max(top, load(scores_ + r));
    }
    const std::int64_t count = round_up(end - begin, block);
    float threshold = max(top) - 1;
    for (int step = 0; step < rules::Entmax::most_steps; ++step) {
      Vec sums(0.0f), squares(0.0f);
      for (std::int64_t r = 0; r < count; r += lanes) {
        const Vec w = rules::Entmax::weight(load(all + r), Vec(threshold));
        sums += w;
        squares = fma(w, w, squares);
      }
      const float next = rules::Entmax::step(threshold, sum(sums), sum(squares));
      if (!(next > threshold)) break;
      threshold = next;
    }
    for (std::int64_t j = begin; j < end; j += block) {
      scores_ = all + (j - begin);
      float highest = 0;
      for (std::int64_t r = 0; r < block; r += lanes) {
        const Vec w = rules::Entmax::weight(load(scores_ + r), Vec(threshold)), p = w * w;
        store(scores_ + r, p);
        const float here = max(p);
        highest = here > highest ? here : highest;
      }
      if (highest > 0) mix_all(j, least(block, end - j));
    }
  }

  /// Processes a block of keys.
  template <class Rule>
  void take(Rule rule, std::int64_t j, std::int64_t count) {
    score(j, count);
    weigh(rule, count);
    mix_all(j, count);
  }
  void mix_all(std::int64_t j, std::int64_t count) {
    for (std::int64_t c = 0; c < value_width_; c += vectors * lanes) {
      mix_from<vectors>(j, count, c);
    }
  }

  /// s_j = q . k_j for `count` keys. The scores beyond the last key are minus infinity.
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

  /// Computes the share of each key of a block, then multiplies it by the remaining length of the
  /// stick, from the last key to the first.
  void weigh(rules::Stick, std::int64_t count) {
    float kept[block];
    for (std::int64_t r = 0; r < block; r += lanes) {
      const auto broken = rules::Stick::broken(load(scores_ + r));
      store(scores_ + r, broken.taken);
      store(kept + r, broken.kept);
    }
    for (std::int64_t r = count - 1; r >= 0; --r) {
      scores_[r] *= left_;
      left_ *= kept[r];
    }
  }

  void weigh(rules::Tra, std::int64_t count) {
    for (std::int64_t r = count - 1; r >= 0; --r) {
      scores_[r] = rules::Tra::logit(scores_[r], pull_, count_);
    }
    weigh(rules::Softmax(), count);
  }

  /// p_j = 2^(s_j - m), where m is the maximum score so far, including this block. The sums of
  /// earlier blocks, computed with the maximum m' before this block, are multiplied by 2^(m' - m).
  void weigh(rules::Softmax, std::int64_t) {
    Vec greatest = load(scores_);
    for (std::int64_t r = lanes; r < block; r += lanes) greatest = max(greatest, load(scores_ + r));
    const float before = maximum_, now = max(greatest);
    maximum_ = before > now ? before : now;
    Vec total(0.0f);
    for (std::int64_t r = 0; r < block; r += lanes) {
      const Vec p = exp2(load(scores_ + r) - Vec(maximum_));
      store(scores_ + r, p);
      total += p;
    }
    const Vec factor = exp2(Vec(before) - Vec(maximum_));
    sum_ = sum(fma(factor, Vec(sum_ / static_cast<float>(lanes)), total));
    if (before == maximum_) return;
    for (std::int64_t c = 0; c < value_width_; c += lanes) {
      store(outputs_ + c, factor * load(outputs_ + c));
    }
  }

  /// y_c += sum_j p_j v_jc for at most n vectors of columns, from column c on.
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
    // columns in the last vector
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

  float share(rules::Softmax) const { return 1.0f / sum_; }
  float share(rules::Tra) const { return sum_ == 0 ? 0.0f : 1.0f / sum_; }
  float share(rules::Stick) const { return 1; }
  float share(rules::Entmax) const { return 1; }

  void save(rules::Softmax) {
    if (!task_.log_sum) return;
    float logs[lanes];
    store(logs, fma(Vec(maximum_), Vec(ln_of_2), log(Vec(sum_))));
    *task_.log_sum.row(row_) = logs[0];
  }
  template <class Other>
  void save(Other) {}

  const AttentionRows<T>& task_;
  std::int64_t row_, position_, width_, value_width_;
  float *query_, *scores_, *outputs_;
  float left_ = 1, pull_ = 0, count_ = 0, times_ = 1;
  float maximum_ = -1e38f, sum_ = 0;  // finite, so that inf - inf cannot occur before the first key
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
