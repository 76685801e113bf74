#include "core/cpu/isa.h"
#include "core/cpu/loop.h"
#include "core/cpu/math.h"
#include "core/cpu/rope/kernels.h"

namespace longhand::cpu {
namespace LONGHAND_ISA {
namespace {

/// Rotates the first 2 * half entries of one head. Entry p forms a pair with entry p + half.
template <class T>
void rotate_halves(const T* x, const Output<T>& y, std::int64_t at, const float* cosines,
                   const float* sines, Vec direction, std::int64_t half) {
  for_each_vector(half, [&](auto p, auto n) {
    const Vec c = n.load(cosines + p), s = direction * n.load(sines + p);
    // u and v are loaded before y is stored, because y may share the memory of x.
    const Vec u = n.load(x + at + p), v = n.load(x + at + half + p);
    y.put(at + p, n, u * c - v * s);
    y.put(at + half + p, n, u * s + v * c);
  });
}

/// Rotates the first 2 * half entries of one head. Entry 2p forms a pair with entry 2p + 1.
template <class T>
void rotate_neighbours(const T* x, const Output<T>& y, std::int64_t at, const float* cosines,
                       const float* sines, Vec direction, std::int64_t half) {
  const auto rotate = [&](Vec low, Vec high, Vec c, Vec s, Vec& low_out, Vec& high_out) {
    Vec u, v;
    split_pairs(low, high, u, v);
    join_pairs(u * c - v * s, u * s + v * c, low_out, high_out);
  };
  std::int64_t p = 0;
  Vec low, high;
  for (; p + lanes <= half; p += lanes) {
    const T* from = x + at + 2 * p;
    rotate(load(from), load(from + lanes), load(cosines + p), direction * load(sines + p), low,
           high);
    y.put(at + 2 * p, Whole{}, low);
    y.put(at + 2 * p + lanes, Whole{}, high);
  }
  const int rest = static_cast<int>(half - p);
  if (rest == 0) return;
  const int first_rest = 2 * rest < lanes ? 2 * rest : lanes;
  const T* from = x + at + 2 * p;
  low = load_first(from, first_rest);
  high = 2 * rest > lanes ? load_first(from + lanes, 2 * rest - lanes) : Vec(0.0);
  rotate(low, high, load_first(cosines + p, rest), direction * load_first(sines + p, rest), low,
         high);
  y.put(at + 2 * p, Part{first_rest}, low);
  if (2 * rest > lanes) y.put(at + 2 * p + lanes, Part{2 * rest - lanes}, high);
}

template <class T>
void rotate(const typename RopeKernels<T>::Arguments& a, std::int64_t begin, std::int64_t end) {
  const Output<T> y(a.y, a.how);
  const std::int64_t half = a.dims / 2;
  const Vec direction(a.direction);
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t row = i * a.columns;
    const auto copy = [&](std::int64_t from, std::int64_t to) {
      if (a.y == a.x && !a.how.add) return;
      for_each_vector(to - from, [&](auto j, auto n) {
        y.put(row + from + j, n, n.load(a.x + row + from + j));
      });
    };
    copy(0, a.first_column);
    for (std::int64_t h = 0; h < a.heads; ++h) {
      const std::int64_t head = a.first_column + h * a.width;
      if (half > 0) {
        const float* cosines = a.table + a.positions[i] * a.dims;
        if (a.interleaved) {
          rotate_neighbours(a.x, y, row + head, cosines, cosines + half, direction, half);
        } else {
          rotate_halves(a.x, y, row + head, cosines, cosines + half, direction, half);
        }
      }
      copy(head + a.dims, head + a.width);
    }
    copy(a.first_column + a.heads * a.width, a.columns);
  }
}

template <class T>
void rotate_by_angles(const typename RotateKernels<T>::Arguments& a, std::int64_t begin,
                      std::int64_t end) {
  const Output<T> y(a.y, a.how);
  const std::int64_t half = a.width / 2, behind = a.first_column + a.heads * a.width;
  const Vec direction(a.direction);
  for (std::int64_t i = begin; i < end; ++i) {
    const T* x = a.x + i * a.columns;
    const auto copy = [&](std::int64_t from, std::int64_t to) {
      if (a.y == a.x) return;
      for_each_vector(to - from, [&](auto j, auto n) {
        y.put(i * a.columns + from + j, n, n.load(x + from + j));
      });
    };
    copy(0, a.first_column);
    for (std::int64_t group = 0; group < a.groups; ++group) {
      const float* angles = a.angles + (i * a.groups + group) * half;
      for_each_vector(half, [&](auto p, auto n) {
        Vec s, c;
        sine_cosine(n.load(angles + p), s, c);
        s = direction * s;
        for (std::int64_t h = group; h < a.heads; h += a.groups) {
          const std::int64_t at = a.first_column + h * a.width + p;
          // u and v are loaded before y is stored, because y may share the memory of x.
          const Vec u = n.load(x + at), v = n.load(x + at + half);
          y.put(i * a.columns + at, n, u * c - v * s);
          y.put(i * a.columns + at + half, n, u * s + v * c);
        }
      });
    }
    copy(behind, a.columns);
  }
}

template <class T>
void angle_gradients(const typename RotateKernels<T>::Arguments& a, std::int64_t begin,
                     std::int64_t end) {
  const Output<float> dangles(a.dangles, a.how);
  const std::int64_t half = a.width / 2;
  for (std::int64_t i = begin; i < end; ++i) {
    const T *y = a.x + i * a.columns, *dy = a.dy + i * a.columns;
    for (std::int64_t group = 0; group < a.groups; ++group) {
      for_each_vector(half, [&](auto p, auto n) {
        Vec sum(0.0);
        for (std::int64_t h = group; h < a.heads; h += a.groups) {
          const std::int64_t u = a.first_column + h * a.width + p, v = u + half;
          sum += n.load(dy + v) * n.load(y + u) - n.load(dy + u) * n.load(y + v);
        }
        dangles.put((i * a.groups + group) * half + p, n, sum);
      });
    }
  }
}

template <class T>
constexpr RopeKernels<T> table{.rotate = rotate<T>};
template <class T>
constexpr RotateKernels<T> angle_table{.forward = rotate_by_angles<T>,
                                       .backward = angle_gradients<T>};

}  // namespace
}  // namespace LONGHAND_ISA

template <>
const RopeKernels<float>& kernels<RopeKernels<float>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<float>;
}
template <>
const RopeKernels<bf16>& kernels<RopeKernels<bf16>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<bf16>;
}

template <>
const RotateKernels<float>& kernels<RotateKernels<float>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::angle_table<float>;
}
template <>
const RotateKernels<bf16>& kernels<RotateKernels<bf16>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::angle_table<bf16>;
}

}  // namespace longhand::cpu
