#include "core/cpu/attention/kernels.h"
#include "core/cpu/attention/panel.h"
#include "core/cpu/isa.h"

/// Softmax attention and ChaCAL, backward, for a range of keys: the panels of queries pass over it
/// from the last to the first. P comes back from log_sum; five products a block.
///
/// With c_i = scale ln n_i (n: see Tempering; beta multiplies at the end), D_i = dy_i . y_i:
///   dS_ij = c_i P_ij (dy_i . v_j - D_i);  dv_j += P_ij dy_i;  dk_j += dS_ij q_i;  dq_i += dS_ij
///   k_j
/// ChaCAL puts W_i for dy_i, U_j = (1 - g) v_j + g y_j for v_j, and on the diagonal takes back the
/// g W_i . y_i that U has too much. W is solved on the panel's own keys, from its last row up:
///   B_j = sum_(i>j) P_ij W_i;  W_j = dy_j + g B_j;  A_j = B_j + P_jj W_j;  dv_j = (1 - g) A_j
namespace longhand::cpu {
namespace LONGHAND_ISA::attention {
namespace {

constexpr std::int64_t block = panel;

struct Space {
  float *keys, *values;              // of the range, packed; ChaCAL: U
  float *key_sums, *value_sums;      // dk / beta and dv (ChaCAL: A of one head)
  float* all_value_sums;             // dv of all heads (ChaCAL)
  float *queries, *gradients;        // rows of the panel: q, and dy or W
  float *turned, *turned_gradients;  // the same transposed, times the scores' scale and times c
  float* query_sums;                 // dq / beta of the panel
  float *p, *ds;                     // [block][panel]
  float *times, *logs, *sums;        // [panel]: c, log_sum in bits, c D
  std::int64_t key_stride, value_stride, floats;

  Space(std::int64_t width, std::int64_t value_width, std::int64_t range, float* at) {
    key_stride = packed_width(width);
    value_stride = packed_width(value_width);
    const std::int64_t rows = round_up(range, block);
    float* const start = at;
    const auto take = [&](std::int64_t n) {
      float* const here = at;
      at += round_up(n, 16);
      return here;
    };
    keys = take(rows * key_stride);
    values = take(rows * value_stride);
    key_sums = take(rows * key_stride);
    value_sums = take(rows * value_stride);
    all_value_sums = take(rows * value_stride);
    queries = take(panel * key_stride);
    gradients = take(panel * value_stride);
    turned = take(panel * width);
    turned_gradients = take(panel * value_width);
    query_sums = take(panel * key_stride);
    p = take(block * panel);
    ds = take(block * panel);
    times = take(panel);
    logs = take(panel);
    sums = take(panel);
    floats = at - start;
  }
};

void clear(float* at, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += lanes) store(at + i, Vec(0.0f));
}

/// Sums of a_c b_c and of a_c.
template <class A, class B>
float dot(const A* a, const B* b, std::int64_t n) {
  Vec even(0.0f), odd(0.0f);
  std::int64_t c = 0;
  for (; c + 2 * lanes <= n; c += 2 * lanes) {
    even = fma(load(a + c), load(b + c), even);
    odd = fma(load(a + c + lanes), load(b + c + lanes), odd);
  }
  for (; c < n; c += lanes) {
    const int rest = static_cast<int>(n - c < lanes ? n - c : lanes);
    even = fma(load_first(a + c, rest), load_first(b + c, rest), even);
  }
  return sum(even + odd);
}

/// to_t,c (+)= times from_t,c
template <class T>
void write_rows(const float* from, std::int64_t stride, float times, HeadRows<T> to, bool add,
                std::int64_t rows, std::int64_t width) {
  const Vec factor(times);
  for (std::int64_t t = 0; t < rows; ++t) {
    for (std::int64_t c = 0; c < width; c += lanes) {
      T* const at = to.row(t) + c;
      const Vec x = factor * load(from + t * stride + c);
      if (width - c >= lanes) {
        store(at, add ? x + load(at) : x);
      } else {
        const int rest = static_cast<int>(width - c);
        store_first(at, add ? x + load_first(at, rest) : x, rest);
      }
    }
  }
}

/// The rows a tile of keys or queries may read around those that `seen` has.
Range widened(Range seen, std::int64_t keys) {
  return Sight::clip(seen.begin - tile_rows + 1, seen.end + tile_rows - 1,
                     round_up(keys, tile_rows));
}

/// p = 2^(s - log), zero where unseen.
void exponentials(const Sight& sight, float* p, const float* logs) {
  for (std::int64_t t = 0; t < sight.queries; t += lanes) {
    const std::int64_t unit = t / Sight::unit * Sight::unit;
    const Range by_all = sight.keys_of_all(unit, Sight::unit);
    const Range rows = widened(sight.keys_of(unit, Sight::unit), sight.keys);
    const Vec log = load(logs + t);
    for (int r = rows.begin; r < rows.end; ++r) {
      float* const at = p + r * panel + t;
      const Vec x = exp2(load(at) - log);
      const bool whole = r >= by_all.begin && r < by_all.end;
      store(at, whole ? x : select(sight.sees(r, t), x, Vec(0.0f)));
    }
  }
}

/// ds = p (dp - sum), zero where unseen; with make_p, p too, from scores.
template <bool make_p>
void score_gradients(const Sight& sight, float* p, float* ds, const float* logs,
                     const float* sums) {
  for (std::int64_t t = 0; t < sight.queries; t += lanes) {
    const std::int64_t unit = t / Sight::unit * Sight::unit;
    const Range by_all = sight.keys_of_all(unit, Sight::unit);
    const Range rows = widened(sight.keys_of(unit, Sight::unit), sight.keys);
    const Vec log = load(logs + t), own = load(sums + t);
    const auto edge = [&](int begin, int end) {
      for (int r = begin; r < end; ++r) {
        float *const at = p + r * panel + t, *const d_at = ds + r * panel + t;
        const Mask sees = sight.sees(r, t);
        const Vec x = make_p ? exp2(load(at) - log) : load(at);
        store(at, select(sees, x, Vec(0.0f)));
        store(d_at, select(sees, x * (load(d_at) - own), Vec(0.0f)));
      }
    };
    const int begin = by_all.empty() ? rows.end : by_all.begin;
    const int end = by_all.empty() ? rows.end : by_all.end;
    edge(rows.begin, begin);
    for (int r = begin; r < end; ++r) {
      float *const at = p + r * panel + t, *const d_at = ds + r * panel + t;
      const Vec x = make_p ? exp2(load(at) - log) : load(at);
      if (make_p) store(at, x);
      store(d_at, x * (load(d_at) - own));
    }
    edge(end, rows.end);
  }
}

template <class T>
class Work {
 public:
  Work(const AttentionGradients<T>& task, float* scratch)
      : task_(task),
        shape_(task.shape),
        count_(task.end - task.begin),
        key_width_(shape_.width),
        value_width_(shape_.value_width),
        space_(key_width_, value_width_, task.range, scratch) {}

  void begin() {
    pack_rows(from(task_.k, task_.begin), count_, key_width_, space_.keys, space_.key_stride);
    clear(space_.key_sums, round_up(count_, tile_rows) * space_.key_stride);
    if (chain()) {
      clear(space_.all_value_sums, round_up(count_, tile_rows) * space_.value_stride);
    } else {
      pack_rows(from(task_.v, task_.begin), count_, value_width_, space_.values,
                space_.value_stride);
      clear(space_.value_sums, round_up(count_, tile_rows) * space_.value_stride);
    }
  }

  void begin_head(std::int64_t head) {
    if (!chain()) return;
    pack_chained(from(task_.v, task_.begin), from(head_of(task_.y, head), task_.begin), gamma(head),
                 count_, value_width_, space_.values, space_.value_stride);
    clear(space_.value_sums, round_up(count_, tile_rows) * space_.value_stride);
    task_.dgamma[head] = 0;
  }

  void end_head(std::int64_t head) {
    if (!chain()) return;
    const Vec own(1.0f - gamma(head));
    float* const all = space_.all_value_sums;
    for (std::int64_t i = 0; i < count_ * space_.value_stride; i += lanes) {
      store(all + i, fma(own, load(space_.value_sums + i), load(all + i)));
    }
    for (std::int64_t r = 0; r < count_; ++r) {
      task_.dgamma[head] -= dot(space_.value_sums + r * space_.value_stride,
                                task_.v.row(task_.begin + r), value_width_);
    }
  }

  void end() {
    if (task_.dk) {
      write_rows(space_.key_sums, space_.key_stride, beta(), from(task_.dk, task_.begin),
                 task_.add_dk, count_, key_width_);
    }
    if (task_.dv) {
      write_rows(chain() ? space_.all_value_sums : space_.value_sums, space_.value_stride, 1.0f,
                 from(task_.dv, task_.begin), task_.add_dv, count_, value_width_);
    }
  }

  void panel_of(std::int64_t head, std::int64_t row) {
    const std::int64_t n = least(panel, shape_.queries - row);
    const std::int64_t position = shape_.offset + row;
    const bool first = position + n - 1 < task_.end;  // no later range sees this panel
    const bool last = position + 1 - shape_.window >= task_.begin || task_.begin == 0;
    start(head, row, n);

    const bool solve = chain() && first;
    const Sight own = sight(row, position, n);
    if (solve) {
      score(own, position);
      exponentials(own, space_.p, space_.logs);
      solve_chain(head, row, n);
    } else if (chain()) {
      pack_rows(HeadRows<const float>{chain_row(head, row), space_.value_stride}, n, value_width_,
                space_.gradients, space_.value_stride);
    } else {
      pack_rows(from(head_of(task_.dy, head), row), n, value_width_, space_.gradients,
                space_.value_stride);
    }
    turn_gradients(head, row, n);
    start_query_sums(head, row, n, first);

    if (solve) {
      score_gradient_tiles(own, position);
      const Vec g(gamma(head));
      for (std::int64_t i = 0; i < n; ++i) {
        space_.ds[i * panel + i] -= gamma(head) * space_.sums[i];
      }
      score_gradients<false>(own, space_.p, space_.ds, space_.logs, space_.sums);
      mix(own, position, false);
    }
    const std::int64_t stop = solve ? position : least(task_.end, position + n);
    for (std::int64_t j = task_.begin; j < stop; j += block) {
      const Sight there = sight(row, j, least(block, stop - j));
      if (there.empty()) continue;
      score(there, j);
      score_gradient_tiles(there, j);
      score_gradients<true>(there, space_.p, space_.ds, space_.logs, space_.sums);
      mix(there, j, true);
    }
    finish_query_sums(head, row, n, last);
  }

 private:
  template <class U>
  static HeadRows<U> from(HeadRows<U> x, std::int64_t row) {
    return {x.row(row), x.stride};
  }
  template <class U>
  HeadRows<U> head_of(HeadRows<U> x, std::int64_t head) const {
    return {x.at + head * value_width_, x.stride};
  }
  HeadRows<const T> query_head(std::int64_t head) const {
    return {task_.q.at + head * key_width_, task_.q.stride};
  }
  bool chain() const { return task_.gamma != nullptr; }
  float gamma(std::int64_t head) const { return task_.gamma[head * task_.gamma_step]; }
  float beta() const {
    return task_.temper.kind == Tempering::Kind::none ? 1.0f : task_.temper.beta;
  }
  float* chain_row(std::int64_t head, std::int64_t row) const {
    return task_.chain_rows + (head * shape_.queries + row) * space_.value_stride;
  }
  float* saved_query_sums(std::int64_t head, std::int64_t row) const {
    return task_.dq_sums + (head * shape_.queries + row) * space_.key_stride;
  }
  Sight sight(std::int64_t row, std::int64_t j, std::int64_t keys) const {
    return {keys, least(panel, shape_.queries - row), shape_.offset + row - j, shape_.window};
  }
  float* key_row(float* rows, std::int64_t j) const {
    return rows + (j - task_.begin) * space_.key_stride;
  }
  float* value_row(float* rows, std::int64_t j) const {
    return rows + (j - task_.begin) * space_.value_stride;
  }

  void start(std::int64_t head, std::int64_t row, std::int64_t n) {
    logs_of_lengths(task_.temper, shape_, row, space_.times);
    const Vec scale(task_.scale), more(task_.scale * beta() * log2_of_e);
    for (std::int64_t t = 0; t < panel; t += lanes) {
      const Vec log_n = load(space_.times + t);
      store(space_.times + t, scale * log_n);
      store(space_.sums + t, more * log_n);
    }
    const auto q = from(query_head(head), row);
    pack_transposed(q, n, key_width_, space_.sums, space_.turned);
    pack_rows(q, n, key_width_, space_.queries, space_.key_stride);
    for (std::int64_t t = 0; t < panel; ++t) {
      space_.logs[t] = t < n ? log2_of_e * task_.log_sum.row(row + t)[head] : 1e30f;
    }
  }

  void turn_gradients(std::int64_t head, std::int64_t row, std::int64_t n) {
    const auto y = from(head_of(task_.y, head), row);
    for (std::int64_t t = 0; t < panel; ++t) {
      space_.sums[t] = t < n ? space_.times[t] * dot(space_.gradients + t * space_.value_stride,
                                                     y.row(t), value_width_)
                             : 0.0f;
    }
    pack_transposed(HeadRows<const float>{space_.gradients, space_.value_stride}, n, value_width_,
                    space_.times, space_.turned_gradients);
  }

  void score(const Sight& there, std::int64_t j) {
    score_tiles<Exact>(key_row(space_.keys, j), space_.key_stride, space_.turned, key_width_, there,
                       space_.p);
  }
  void score_gradient_tiles(const Sight& there, std::int64_t j) {
    score_tiles<Exact>(value_row(space_.values, j), space_.value_stride, space_.turned_gradients,
                       value_width_, there, space_.ds);
  }
  void mix(const Sight& there, std::int64_t j, bool values) {
    if (values) {
      mix_queries<Exact>(space_.p, space_.gradients, space_.value_stride, there,
                         value_row(space_.value_sums, j), value_width_);
    }
    mix_queries<Exact>(space_.ds, space_.queries, space_.key_stride, there,
                       key_row(space_.key_sums, j), key_width_);
    mix_keys<Exact>(space_.ds, key_row(space_.keys, j), space_.key_stride, there, space_.query_sums,
                    key_width_);
  }

  /// From B of the later panels in value_sums: W into gradients, A into value_sums.
  void solve_chain(std::int64_t head, std::int64_t row, std::int64_t n) {
    const std::int64_t stride = space_.value_stride;
    float* const sums = value_row(space_.value_sums, shape_.offset + row);
    const auto dy = from(head_of(task_.dy, head), row);
    const auto y = from(head_of(task_.y, head), row);
    pack_rows(dy, n, value_width_, space_.gradients, stride);
    const int vectors = static_cast<int>((value_width_ + lanes - 1) / lanes);
    const float g = gamma(head);
    for (std::int64_t r = (n - 1) / tile_rows * tile_rows; r >= 0; r -= tile_rows) {
      const std::int64_t after = least(r + tile_rows, n);
      if (after < n) {
        row_tile<Exact>({space_.p + r * panel + after, panel, 1}, space_.gradients + after * stride,
                        stride, n - after, sums + r * stride, stride, vectors, true);
      }
      for (std::int64_t c = 0; c < value_width_; c += lanes) {
        for (std::int64_t j = after - 1; j >= r; --j) {
          const float* const p = space_.p + j * panel;
          Vec b = load(sums + j * stride + c);
          for (std::int64_t i = after - 1; i > j; --i) {
            b = fma(Vec(p[i]), load(space_.gradients + i * stride + c), b);
          }
          float* const w = space_.gradients + j * stride + c;
          store(w, fma(Vec(g), b, load(w)));
          store(sums + j * stride + c, b);
        }
      }
      for (std::int64_t j = r; j < after; ++j) {
        task_.dgamma[head] += dot(sums + j * stride, y.row(j), value_width_);
        const Vec p(space_.p[j * panel + j]);
        for (std::int64_t c = 0; c < value_width_; c += lanes) {
          float* const a = sums + j * stride + c;
          store(a, fma(p, load(space_.gradients + j * stride + c), load(a)));
        }
      }
    }
    if (task_.chain_rows) {
      float* const saved = chain_row(head, row);
      for (std::int64_t i = 0; i < n * stride; i += lanes) {
        store(saved + i, load(space_.gradients + i));
      }
    }
  }

  void start_query_sums(std::int64_t head, std::int64_t row, std::int64_t n, bool first) {
    const std::int64_t floats = n * space_.key_stride;
    if (first) {
      clear(space_.query_sums, round_up(n, tile_rows) * space_.key_stride);
    } else {
      const float* const saved = saved_query_sums(head, row);
      for (std::int64_t i = 0; i < floats; i += lanes) {
        store(space_.query_sums + i, load(saved + i));
      }
    }
  }

  void finish_query_sums(std::int64_t head, std::int64_t row, std::int64_t n, bool last) {
    if (!last) {
      float* const saved = saved_query_sums(head, row);
      for (std::int64_t i = 0; i < n * space_.key_stride; i += lanes) {
        store(saved + i, load(space_.query_sums + i));
      }
      return;
    }
    if (task_.dbeta) {
      for (std::int64_t t = 0; t < n; ++t) {
        *task_.dbeta += dot(space_.queries + t * space_.key_stride,
                            space_.query_sums + t * space_.key_stride, key_width_);
      }
    }
    if (task_.dq) {
      const HeadRows<T> dq{task_.dq.row(row) + head * key_width_, task_.dq.stride};
      write_rows(space_.query_sums, space_.key_stride, beta(), dq, task_.add_dq, n, key_width_);
    }
  }

  const AttentionGradients<T>& task_;
  const SegmentShape& shape_;
  std::int64_t count_, key_width_, value_width_;
  Space space_;
};

std::int64_t scratch(std::int64_t width, std::int64_t value_width, std::int64_t range) {
  return Space(width, value_width, range, nullptr).floats;
}
template <class T>
void begin(const AttentionGradients<T>& task, float* at) {
  Work<T>(task, at).begin();
}
template <class T>
void begin_head(const AttentionGradients<T>& task, std::int64_t head, float* at) {
  Work<T>(task, at).begin_head(head);
}
template <class T>
void panel_of(const AttentionGradients<T>& task, std::int64_t head, std::int64_t row, float* at) {
  Work<T>(task, at).panel_of(head, row);
}
template <class T>
void end_head(const AttentionGradients<T>& task, std::int64_t head, float* at) {
  Work<T>(task, at).end_head(head);
}
template <class T>
void end(const AttentionGradients<T>& task, float* at) {
  Work<T>(task, at).end();
}

template <class T>
constexpr AttentionGradientKernels<T> table{scratch,     packed_width, begin<T>, begin_head<T>,
                                            panel_of<T>, end_head<T>,  end<T>};

}  // namespace
}  // namespace LONGHAND_ISA::attention

template <>
const AttentionGradientKernels<float>&
kernels<AttentionGradientKernels<float>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::table<float>;
}
template <>
const AttentionGradientKernels<bf16>& kernels<AttentionGradientKernels<bf16>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::attention::table<bf16>;
}

}  // namespace longhand::cpu
