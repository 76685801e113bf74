#include "core/cpu/attention/kernels.h"
#include "core/cpu/attention/panel.h"
#include "core/cpu/isa.h"

/// First-After-Last: m(i) = max { j < i : q_i . k_j > 0 } by scanning blocks of keys backward from
/// the panel's own. Near the diagonal, where most matches are, each vector of queries takes one
/// tile of keys at a time and stops when all its queries have theirs; further back the panel goes
/// together in large tiles, so that queries without a match cost no more than one matrix product.
/// Scores are f32 products summed in the order of the columns, whatever the tile.
namespace longhand::cpu {
namespace LONGHAND_ISA::attention {
namespace {

constexpr std::int64_t block = panel;

struct Space {
  float *keys, *turned, *scores, *ones, *found;
  std::int32_t* match;
  std::int64_t key_stride, floats;

  Space(std::int64_t width, float* at) {
    key_stride = packed_width(width);
    float* const start = at;
    const auto take = [&](std::int64_t n) {
      float* const here = at;
      at += round_up(n, 16);
      return here;
    };
    keys = take(block * key_stride);
    turned = take(panel * width);
    scores = take(block * panel);
    ones = take(panel);
    found = take(panel);
    match = reinterpret_cast<std::int32_t*>(take(panel));
    floats = at - start;
  }
};

/// y_c (+)= times x_c; no x: zeros
template <class T, class X>
void write_row(const X* x, Vec times, T* y, bool add, std::int64_t width) {
  std::int64_t c = 0;
  for (; c + lanes <= width; c += lanes) {
    Vec value = x ? times * load(x + c) : Vec(0.0f);
    if (add) value += load(y + c);
    store(y + c, value);
  }
  if (c == width) return;
  const int n = static_cast<int>(width - c);
  Vec value = x ? times * load_first(x + c, n) : Vec(0.0f);
  if (add) value += load_first(y + c, n);
  store_first(y + c, value, n);
}

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
    for (std::int64_t t = 0; t < panel; t += lanes) {
      store(space_.ones + t, Vec(1.0f));
      store(space_.found + t, Vec(0.0f));
      store(space_.match + t, IntVec(-1));
    }
    pack_transposed<Exact>(Source<T>{{task_.q.row(row_), task_.q.stride}, n_, width_}, n_, width_,
                           space_.ones, space_.turned);
    std::int64_t end = position_ + n_ - 1;  // no query sees beyond the key before the last of them
    while (end > 0 && !done()) {
      const std::int64_t begin = end > position_ ? position_ : most(0, end - block);
      scan(begin, end);
      end = begin;
    }
    write();
  }

 private:
  /// Vector t / lanes has queries without a match yet.
  bool open(std::int64_t t) const {
    return any((load(space_.match + t) < IntVec(0)) &
               first(static_cast<int>(least(lanes, n_ - t))));
  }
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
    // Strictly before the query: as if it stood one position earlier.
    const Sight sight{count, n_, position_ - 1 - begin, std::int64_t{1} << 40};
    const bool far = end + block <= position_;
    if (far) {
      score_tiles<Exact>(space_.keys, space_.key_stride, space_.turned, width_, sight,
                         space_.scores);
    }
    for (std::int64_t t = 0; t < n_; t += lanes) {
      for (std::int64_t r = (count - 1) / tile_rows * tile_rows; r >= 0 && open(t);
           r -= tile_rows) {
        if (sight.keys_of(t, lanes).end <= r) continue;
        if (!far) tile_of(r, t);
        take(r, least(r + tile_rows, count), t, begin, sight);
      }
    }
  }

  void tile_of(std::int64_t r, std::int64_t t) {
    for (std::int64_t k = 0; k < width_; k += depth_piece) {
      row_tile<Exact>({space_.keys + r * space_.key_stride + k, space_.key_stride, 1},
                      space_.turned + k * panel + t, panel, least(depth_piece, width_ - k),
                      space_.scores + r * panel + t, panel, 1, k > 0);
    }
  }

  /// The last of the keys [r, end) with a positive score, for queries that have none later.
  void take(std::int64_t r, std::int64_t end, std::int64_t t, std::int64_t begin,
            const Sight& sight) {
    IntVec match = load(space_.match + t);
    Vec found = load(space_.found + t);
    const std::int64_t all = sight.keys_of_all(t, lanes).end;
    for (std::int64_t j = end - 1; j >= r; --j) {
      const Vec s = load(space_.scores + j * panel + t);
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
    for (std::int64_t t = 0; t < n_; ++t) {
      const std::int64_t m = space_.match[t];
      *task_.match.row(row_ + t) = space_.match[t];
      T* const y = task_.y.row(row_ + t);
      const T* const v = task_.v.row(m + 1);  // of no consequence when there is no match
      const Vec score(space_.found[t]);
      write_row(m < 0 ? nullptr : v, score, y, false, width);
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
}

std::int64_t gradient_scratch(std::int64_t width, std::int64_t value_width, std::int64_t range) {
  return range * (round_up(width, lanes) + round_up(value_width, lanes)) + 2 * lanes;
}

template <class T>
float dot(const T* a, const T* b, std::int64_t n) {
  Vec sums(0.0f);
  std::int64_t c = 0;
  for (; c + lanes <= n; c += lanes) sums = fma(load(a + c), load(b + c), sums);
  const int rest = static_cast<int>(n - c);
  if (rest > 0) sums = fma(load_first(a + c, rest), load_first(b + c, rest), sums);
  return sum(sums);
}

/// to_c += times x_c in f32 scratch of whole vectors
template <class T>
void add_row(float times, const T* x, float* to, std::int64_t n) {
  const Vec factor(times);
  std::int64_t c = 0;
  for (; c + lanes <= n; c += lanes) store(to + c, fma(factor, load(x + c), load(to + c)));
  if (c < n) {
    store(to + c, fma(factor, load_first(x + c, static_cast<int>(n - c)), load(to + c)));
  }
}

template <class T>
void gradients(const FalGradients<T>& task, std::int64_t begin, std::int64_t end, float* at) {
  const SegmentShape& shape = task.shape;
  const std::int64_t width = shape.width, value_width = shape.value_width;
  const std::int64_t stride = round_up(width, lanes), value_stride = round_up(value_width, lanes);
  float* const key_sums = at;
  float* const value_sums = at + (end - begin) * stride;
  for (std::int64_t i = 0; i < (end - begin) * (stride + value_stride); i += lanes) {
    store(at + i, Vec(0.0f));
  }
  const auto ours = [&](std::int64_t key) { return key >= begin && key < end; };
  for (std::int64_t h = 0; h < task.heads; ++h) {
    // A match lies before its query.
    for (std::int64_t t = most(0, begin - shape.offset); t < shape.queries; ++t) {
      const std::int64_t m = task.match.row(t)[h];
      T* const dq = task.dq ? task.dq.row(t) + h * width : nullptr;
      if (m < 0) {
        if (dq && ours(shape.offset + t) && !task.add_dq) {
          write_row<T, T>(nullptr, Vec(0.0f), dq, false, width);
        }
        continue;
      }
      const T* const q = task.q.row(t) + h * width;
      const T* const dy = task.dy.row(t) + h * value_width;
      if (ours(m)) {
        const float g = dot(dy, task.v.row(m + 1), value_width);
        if (dq) write_row(task.k.row(m), Vec(g), dq, task.add_dq, width);
        add_row(g, q, key_sums + (m - begin) * stride, width);
      }
      if (ours(m + 1)) {
        add_row(dot(q, task.k.row(m), width), dy, value_sums + (m + 1 - begin) * value_stride,
                value_width);
      }
    }
  }
  for (std::int64_t j = begin; j < end; ++j) {
    if (task.dk) {
      write_row(key_sums + (j - begin) * stride, Vec(1.0f), task.dk.row(j), task.add_dk, width);
    }
    if (task.dv) {
      write_row(value_sums + (j - begin) * value_stride, Vec(1.0f), task.dv.row(j), task.add_dv,
                value_width);
    }
  }
}

template <class T>
constexpr FalKernels<T> table{scratch, rows<T>, gradient_scratch, gradients<T>};

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
