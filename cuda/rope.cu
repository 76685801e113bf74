#include "core/contract/rope.h"

#include "cuda/cuda_backend.h"
#include "cuda/launch.h"
#include "cuda/visit.h"

namespace longhand::cuda {
namespace {

/// Arguments of Rope (core/contract/rope.h). For each row of x, `pairs` threads each rotate one
/// pack of pairs of entries, and `copies` threads each copy one pack of the columns that are not
/// rotated. Nothing is copied if y shares the memory of x.
template <class T>
struct Turn {
  const T* x;
  const std::int32_t* positions;
  const float* table;
  std::int64_t longest;  // number of rows of `table`
  std::int64_t rows, columns, first_column, heads, width, dims;
  std::int64_t pairs, copies;
  bool interleaved;
  float direction;  // 1, or -1 for the inverse rotation
  Out<T> y;
};

/// The first column of pack number `item` among the columns that are not rotated. Such columns are
/// before the heads, after them, or after the rotated part of a head.
template <int width, class T>
__device__ __forceinline__ std::int64_t unturned_column(const Turn<T>& r, std::int64_t item) {
  const std::int64_t c = item * width, each = r.width - r.dims;
  if (c < r.first_column) return c;
  const std::int64_t in_heads = c - r.first_column;
  if (in_heads >= r.heads * each) return c + r.heads * r.dims;
  return c + (in_heads / each + 1) * r.dims;
}

/// Each thread rotates `width` consecutive pairs of entries of one head. A pair (u, v) with the
/// angle t becomes
///   u' = u cos t - v sin t;  v' = u sin t + v cos t.
/// Pair p consists of the entries p and p + dims/2 of the head or, if pairs are interleaved, of the
/// entries 2p and 2p + 1. Other threads copy columns without rotation.
template <int width, class T>
__global__ void __launch_bounds__(block_threads) rope(const Turn<T> r) {
  const RowColumn item = row_column(thread_in_grid(), r.pairs + r.copies);
  if (item.row >= r.rows) return;
  const std::int64_t row = item.row * r.columns;
  if (item.column >= r.pairs) {
    const std::int64_t at = row + unturned_column<width>(r, item.column - r.pairs);
    return r.y.put(at, load<width>(r.x + at));
  }
  const std::int64_t half = r.dims / 2;
  const RowColumn pair = row_column(item.column, half / width);
  const std::int64_t p = pair.column * width, head = row + r.first_column + pair.row * r.width;
  const std::int64_t first = head + (r.interleaved ? 2 * p : p);
  const std::int64_t second = r.interleaved ? first + width : first + half;
  const Floats<width> a = load<width>(r.x + first), b = load<width>(r.x + second);

  const std::int64_t position = r.positions[item.row];
  Floats<width> cosines, sines;
  if (position >= 0 && position < r.longest) {
    cosines = load<width>(r.table + position * r.dims + p);
    sines = load<width>(r.table + position * r.dims + half + p);
  } else {
#pragma unroll
    for (int k = 0; k < width; ++k) cosines.at[k] = sines.at[k] = NAN;
  }
  Floats<width> new_a{}, new_b{};
#pragma unroll
  for (int k = 0; k < width; ++k) {
    const float c = cosines.at[k], s = r.direction * sines.at[k];
    if constexpr (width == 1) {
      new_a.at[k] = a.at[k] * c - b.at[k] * s;
      new_b.at[k] = a.at[k] * s + b.at[k] * c;
    } else {
      // If pairs are interleaved, the packs a and b together are one array of 2 width entries. Pair
      // k then consists of the entries 2k and 2k + 1 of this array.
      const int even = 2 * k % width, odd = even + 1;
      const bool in_a = 2 * k < width;
      const float u = r.interleaved ? (in_a ? a.at[even] : b.at[even]) : a.at[k];
      const float v = r.interleaved ? (in_a ? a.at[odd] : b.at[odd]) : b.at[k];
      const float new_u = u * c - v * s, new_v = u * s + v * c;
      if (r.interleaved) {
        (in_a ? new_a : new_b).at[even] = new_u;
        (in_a ? new_a : new_b).at[odd] = new_v;
      } else {
        new_a.at[k] = new_u;
        new_b.at[k] = new_v;
      }
    }
  }
  r.y.put(first, new_a);
  r.y.put(second, new_b);
}

/// Arguments of Rotate and RotateBackward (core/contract/rope.h). A head has `width` columns, which
/// form width / 2 pairs of entries. The heads are divided into `groups` groups. In each row of x,
/// all heads of a group have the same width / 2 angles, one per pair. For each row, Rotate uses one
/// thread per angle, which rotates all pairs with this angle, and `copies` threads, each of which
/// copies one column outside the heads. Nothing is copied if y shares the memory of x.
template <class T>
struct Angles {
  const T *x, *dy;      // in the backward pass, x points to the output y
  const float* angles;  // null in the backward pass
  std::int64_t rows, columns, first_column, heads, width, groups, copies;
  float direction;  // 1, or -1 for the inverse rotation
  Out<T> y;
  Out<float> dangles;
};

template <class T>
__global__ void __launch_bounds__(block_threads) rotate(const Angles<T> r) {
  const std::int64_t half = r.width / 2, pairs = r.groups * half;
  const RowColumn item = row_column(thread_in_grid(), pairs + r.copies);
  if (item.row >= r.rows) return;
  const std::int64_t row = item.row * r.columns;
  if (item.column >= pairs) {
    const std::int64_t c = item.column - pairs;
    const std::int64_t at = row + (c < r.first_column ? c : c + r.heads * r.width);
    return r.y.put(at, load<1>(r.x + at));
  }
  const RowColumn pair = row_column(item.column, half);
  float s, c;
  sincosf(r.angles[item.row * pairs + item.column], &s, &c);
  s *= r.direction;
  for (std::int64_t h = pair.row; h < r.heads; h += r.groups) {
    const std::int64_t at = row + r.first_column + h * r.width + pair.column;
    // Both entries of the pair are loaded before a result is stored, because y may be x.
    const float u = load<1>(r.x + at).at[0], v = load<1>(r.x + at + half).at[0];
    r.y.put(at, Floats<1>{{u * c - v * s}});
    r.y.put(at + half, Floats<1>{{u * s + v * c}});
  }
}

template <class T>
__global__ void __launch_bounds__(block_threads) rotate_backward(const Angles<T> r) {
  const std::int64_t half = r.width / 2, pairs = r.groups * half;
  const RowColumn item = row_column(thread_in_grid(), pairs);
  if (item.row >= r.rows) return;
  const RowColumn pair = row_column(item.column, half);
  float sum = 0;
  for (std::int64_t h = pair.row; h < r.heads; h += r.groups) {
    const std::int64_t u = item.row * r.columns + r.first_column + h * r.width + pair.column;
    const std::int64_t v = u + half;
    sum += load<1>(r.dy + v).at[0] * load<1>(r.x + u).at[0] -
           load<1>(r.dy + u).at[0] * load<1>(r.x + v).at[0];
  }
  r.dangles.put(item.row * pairs + item.column, Floats<1>{{sum}});
}

}  // namespace

void run(CudaBackend& backend, const Rope& op) {
  if (!op.y) return;
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const Out<T> y = out<T>(op.y);
    Turn<T> r{.x = op.x.data<T>(),
              .positions = op.positions.data<std::int32_t>(),
              .table = op.table.data<float>(),
              .longest = op.table.shape()[0],
              .rows = op.x.rows(),
              .columns = op.x.columns(),
              .first_column = op.first_column,
              .heads = op.heads,
              .width = op.width,
              .dims = op.dims,
              .pairs = op.heads * (op.dims / 2),
              .copies = y.y == op.x.data<T>() && !y.add ? 0 : op.x.columns() - op.heads * op.dims,
              .interleaved = op.interleaved,
              .direction = op.inverse ? -1.0f : 1.0f,
              .y = y};
    constexpr int full = full_width<T>;
    const bool fits = on_16_bytes(r.x, r.table, y.y) && r.columns % full == 0 &&
                      r.first_column % full == 0 && r.width % full == 0 && r.dims % (2 * full) == 0;
    with_width<T>(fits, [&](auto width) {
      r.pairs /= width;
      r.copies /= width;
      launch(backend.stream(), grid_of(r.rows * (r.pairs + r.copies)), block_threads, 0,
             rope<width, T>, r);
    });
  });
}

void run(CudaBackend& backend, const Rotate& op) {
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const std::int64_t angles = op.angles.columns();
    const Angles<T> r{
        .x = op.x.data<T>(),
        .dy = nullptr,
        .angles = op.angles.data<float>(),
        .rows = op.x.rows(),
        .columns = op.x.columns(),
        .first_column = op.first_column,
        .heads = op.heads,
        .width = op.width,
        .groups = angles / (op.width / 2),
        .copies = op.y.data<T>() == op.x.data<T>() ? 0 : op.x.columns() - op.heads * op.width,
        .direction = op.inverse ? -1.0f : 1.0f,
        .y = {op.y.data<T>(), false},
        .dangles = {}};
    launch(backend.stream(), grid_of(r.rows * (angles + r.copies)), block_threads, 0, rotate<T>, r);
  });
}

void run(CudaBackend& backend, const RotateBackward& op) {
  if (!op.dangles) return;
  visit_activation(op.y.dtype(), [&]<class T>(T) {
    const std::int64_t angles = op.dangles.tensor.columns();
    const Angles<T> r{.x = op.y.data<T>(),
                      .dy = op.dy.data<T>(),
                      .angles = nullptr,
                      .rows = op.y.rows(),
                      .columns = op.y.columns(),
                      .first_column = op.first_column,
                      .heads = op.heads,
                      .width = op.width,
                      .groups = angles / (op.width / 2),
                      .copies = 0,
                      .direction = 1,
                      .y = {},
                      .dangles = out<float>(op.dangles)};
    launch(backend.stream(), grid_of(r.rows * angles), block_threads, 0, rotate_backward<T>, r);
  });
}

}  // namespace longhand::cuda
