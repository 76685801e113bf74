#include "core/contract/optimizer.h"

#include "cuda/cuda_backend.h"
#include "cuda/launch.h"
#include "cuda/team.h"
#include "cuda/visit.h"

/// Kernels of the optimizers. Each kernel processes many tensors in one launch. Its argument is a
/// table of tensors. Each tensor is cut into pieces, and each block processes one piece.
namespace longhand::cuda {
namespace {

/// The tensors that one launch processes, with one Entry for each tensor. Tensors are cut into
/// pieces of Entry::piece_size numbers; the last piece of a tensor may be shorter. The pieces of
/// all tensors are numbered in order, and entry[k].first_piece is the number of tensor k's first
/// piece.
template <class Entry, int capacity_>
struct Table {
  static constexpr int capacity = capacity_;
  Entry entry[capacity];
  int count, pieces;
};

struct Piece {
  int tensor;
  std::int64_t begin, end;
};

/// Returns the piece of a tensor that this block processes.
template <class Entry, int capacity>
__device__ __forceinline__ Piece piece_of(const Table<Entry, capacity>& table) {
  const int piece = static_cast<int>(blockIdx.x);
  int low = 0, high = table.count;  // the index of the tensor is in [low, high)
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (table.entry[middle].first_piece <= piece ? low : high) = middle;
  }
  const Entry& entry = table.entry[low];
  const std::int64_t begin = std::int64_t{piece - entry.first_piece} * Entry::piece_size;
  const std::int64_t end = begin + Entry::piece_size;
  return {low, begin, end < entry.size ? end : entry.size};
}

/// Calls f(i, width) for each pack of numbers that this thread processes. Together, the threads of
/// the block process the whole piece. A pack consists of the tensor's numbers i to i + width - 1.
/// If `boundaries` is true, all operands are aligned to 16 bytes, and packs have 4 numbers where
/// possible. Otherwise they have one number.
template <class F>
__device__ __forceinline__ void for_each_pack(const Piece& piece, bool boundaries, F&& f) {
  constexpr int width = 4;
  const auto thread = static_cast<std::int64_t>(threadIdx.x);
  std::int64_t rest = piece.begin;
  if (boundaries) {
    rest = piece.begin + (piece.end - piece.begin) / width * width;
#pragma unroll 4
    for (std::int64_t i = piece.begin + thread * width; i < rest; i += block_threads * width) {
      f(i, std::integral_constant<int, width>{});
    }
  }
  for (std::int64_t i = rest + thread; i < piece.end; i += block_threads) {
    f(i, std::integral_constant<int, 1>{});
  }
}

template <class Entry>
std::int64_t pieces_of(std::int64_t size) {
  return (size + Entry::piece_size - 1) / Entry::piece_size;
}

/// Distributes `count` tensors over tables of at most `capacity` tensors and calls start(table) for
/// each table. make(k) returns the table entry of tensor k.
template <class Entry, int capacity, class Make, class Start>
void with_tables(std::size_t count, Make&& make, Start&& start) {
  Table<Entry, capacity> table{};
  for (std::size_t k = 0; k < count;) {
    table.count = table.pieces = 0;
    for (; k < count && table.count < capacity; ++k) {
      Entry entry = make(k);
      if (entry.size == 0) continue;
      entry.first_piece = table.pieces;
      table.entry[table.count++] = entry;
      table.pieces += static_cast<int>(pieces_of<Entry>(entry.size));
    }
    start(table);
  }
}

struct SquareEntry {
  static constexpr int piece_size = SquareSums::piece;
  const float* x;
  float* sums;  // one sum of squares per piece
  std::int64_t size;
  int first_piece;
  bool boundaries;
};
using SquareTable = Table<SquareEntry, 160>;

__global__ void __launch_bounds__(block_threads)
    square_sums(const __grid_constant__ SquareTable table) {
  const Piece piece = piece_of(table);
  const SquareEntry& entry = table.entry[piece.tensor];
  float sum = 0;
  for_each_pack(piece, entry.boundaries, [&](std::int64_t i, auto width) {
    const Floats<width> x = load<width>(entry.x + i);
#pragma unroll
    for (int k = 0; k < width; ++k) sum += x.at[k] * x.at[k];
  });
  sum = Block::sum(sum);
  if (threadIdx.x == 0) entry.sums[piece.begin / SquareEntry::piece_size] = sum;
}

/// Computes the norm of all gradients and the factor that clips it to `largest`. `sums` contains
/// the sum of squares of each piece of the gradients:
///   norm = sqrt(sum of `sums`);  factor = min(1, largest / norm), or 1 if largest = 0.
/// If the norm or a loss is not finite, factor becomes 0. A factor that was 0 before remains 0.
__global__ void __launch_bounds__(block_threads)
    norm_of_sums(const float* sums, std::int64_t pieces, const float* losses, std::int64_t count,
                 double largest, float* norm, float* factor) {
  double sum = 0;
  for (std::int64_t p = threadIdx.x; p < pieces; p += block_threads) sum += sums[p];
  sum = Block::reduce(sum, Sum{});
  if (threadIdx.x != 0) return;
  const double root = sqrt(sum), share = largest / root;
  *norm = static_cast<float>(root);
  bool sound = *factor != 0 && fabsf(*norm) < INFINITY;
  for (std::int64_t i = 0; i < count; ++i) sound = sound && fabsf(losses[i]) < INFINITY;
  *factor = !sound ? 0.0f : largest != 0 && share < 1 ? static_cast<float>(share) : 1.0f;
}

struct AdamEntry {
  static constexpr int piece_size = 4096;
  float* w;
  const float* gradient;
  void *m, *v;
  std::int64_t size;
  float coupled;    // weight decay if it is coupled, otherwise 0
  float decoupled;  // weight decay if it is decoupled, otherwise 0
  int first_piece;
  bool m_is_bf16, v_is_bf16, boundaries;
};

/// The numbers of an Adam step (core/contract/optimizer.h) that are the same for all parameters.
struct AdamFactors {
  const float* gradient;  // factor that multiplies all gradients; null means 1
  // three numbers: the learning rate `rate`, rate / (1 - beta1^step) and 1 / (1 - beta2^step)
  const float* now;
  float beta1, rest1;  // rest1 = 1 - beta1
  float beta2, rest2;  // rest2 = 1 - beta2
  float epsilon;
};

template <class M, class V>
__device__ __forceinline__ void adam_piece(const Piece& piece, const AdamEntry& entry,
                                           const AdamFactors& f) {
  const float factor = f.gradient ? *f.gradient : 1.0f;
  if (factor == 0) return;
  const float rate = f.now[1], scale_v = f.now[2];
  const float coupled = entry.coupled, kept = 1 - f.now[0] * entry.decoupled;
  float* const w_all = entry.w;
  const float* const gradient_all = entry.gradient;
  M* const m_all = static_cast<M*>(entry.m);
  V* const v_all = static_cast<V*>(entry.v);
  for_each_pack(piece, entry.boundaries, [&](std::int64_t i, auto width) {
    Floats<width> w = load<width>(w_all + i), m = load<width>(m_all + i);
    Floats<width> v = load<width>(v_all + i);
    const Floats<width> gradient = load<width>(gradient_all + i);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float g = factor * gradient.at[k] + coupled * w.at[k];
      m.at[k] = f.beta1 * m.at[k] + f.rest1 * g;
      v.at[k] = f.beta2 * v.at[k] + f.rest2 * g * g;
      w.at[k] = kept * w.at[k] - rate * m.at[k] / (sqrtf(v.at[k] * scale_v) + f.epsilon);
    }
    store(m_all + i, m);
    store(v_all + i, v);
    store(w_all + i, w);
  });
}

template <int capacity>
__global__ void __launch_bounds__(block_threads)
    adam(const __grid_constant__ Table<AdamEntry, capacity> table, const AdamFactors f) {
  const Piece piece = piece_of(table);
  const AdamEntry& entry = table.entry[piece.tensor];
  if (entry.m_is_bf16) {
    entry.v_is_bf16 ? adam_piece<bf16, bf16>(piece, entry, f)
                    : adam_piece<bf16, float>(piece, entry, f);
  } else {
    entry.v_is_bf16 ? adam_piece<float, bf16>(piece, entry, f)
                    : adam_piece<float, float>(piece, entry, f);
  }
}

struct SgdEntry {
  static constexpr int piece_size = 4096;
  float* w;
  const float* gradient;
  float* velocity;
  std::int64_t size;
  float decay;
  int first_piece;
  bool boundaries;
};

template <int capacity>
__global__ void __launch_bounds__(block_threads)
    sgd(const __grid_constant__ Table<SgdEntry, capacity> table, const float* rate_of_step,
        const float* factor_of_norm, float momentum) {
  const Piece piece = piece_of(table);
  const SgdEntry& entry = table.entry[piece.tensor];
  const float factor = factor_of_norm ? *factor_of_norm : 1.0f, rate = *rate_of_step;
  if (factor == 0) return;
  for_each_pack(piece, entry.boundaries, [&](std::int64_t i, auto width) {
    Floats<width> w = load<width>(entry.w + i), u = load<width>(entry.velocity + i);
    const Floats<width> gradient = load<width>(entry.gradient + i);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      u.at[k] = momentum * u.at[k] + (factor * gradient.at[k] + entry.decay * w.at[k]);
      w.at[k] -= rate * u.at[k];
    }
    store(entry.velocity + i, u);
    store(entry.w + i, w);
  });
}

/// Calls run(capacity), where `capacity` is the number of entries of a Table: 64 for a model of at
/// most 64 tensors, otherwise 500. The table is a kernel argument. Kernel arguments are limited to
/// 32764 bytes, and a table of 500 tensors needs up to 28 KB.
template <class Run>
void with_capacity(std::size_t tensors, Run&& run) {
  if (tensors <= 64) return run(std::integral_constant<int, 64>{});
  run(std::integral_constant<int, 500>{});
}

}  // namespace

void run(CudaBackend& backend, const SquareSums& op) {
  const auto make = [&](std::size_t k) {
    const Tensor& x = op.tensors[k];
    return SquareEntry{.x = x.data<float>(),
                       .sums = op.sums[k].data<float>(),
                       .size = x.size(),
                       .first_piece = 0,
                       .boundaries = on_16_bytes(x.data<float>())};
  };
  with_tables<SquareEntry, SquareTable::capacity>(
      op.tensors.size(), make, [&](const SquareTable& table) {
        if (table.pieces == 0) return;
        launch(backend.stream(), table.pieces, block_threads, 0, square_sums, table);
      });
}

void run(CudaBackend& backend, const GlobalNorm& op) {
  launch(backend.stream(), 1, block_threads, 0, norm_of_sums, op.squares.data<float>(),
         op.squares.size(), data_or_null<float>(op.losses), op.losses ? op.losses.size() : 0,
         op.largest, op.norm.data<float>(), op.factor.data<float>());
}

void run(CudaBackend& backend, const Adam& op) {
  if (op.parameters.empty()) return;
  const AdamFactors factors{.gradient = data_or_null<float>(op.factor),
                            .now = op.now.data<float>(),
                            .beta1 = static_cast<float>(op.beta1),
                            .rest1 = static_cast<float>(1 - op.beta1),
                            .beta2 = static_cast<float>(op.beta2),
                            .rest2 = static_cast<float>(1 - op.beta2),
                            .epsilon = static_cast<float>(op.epsilon)};
  const auto make = [&](std::size_t k) {
    const Tensor &w = op.parameters[k], &gradient = op.gradients[k], &m = op.m[k], &v = op.v[k];
    const double decay = op.decay[k];
    return AdamEntry{.w = w.data<float>(),
                     .gradient = gradient.data<float>(),
                     .m = m.address(),
                     .v = v.address(),
                     .size = w.size(),
                     .coupled = static_cast<float>(op.decoupled ? 0 : decay),
                     .decoupled = static_cast<float>(op.decoupled ? decay : 0),
                     .first_piece = 0,
                     .m_is_bf16 = m.dtype() == DType::bf16,
                     .v_is_bf16 = v.dtype() == DType::bf16,
                     .boundaries = on_16_bytes(w.data<float>(), gradient.data<float>(),
                                               static_cast<const std::byte*>(m.address()),
                                               static_cast<const std::byte*>(v.address()))};
  };
  with_capacity(op.parameters.size(), [&]<int capacity>(std::integral_constant<int, capacity>) {
    const auto start = [&](const Table<AdamEntry, capacity>& table) {
      launch(backend.stream(), table.pieces, block_threads, 0, adam<capacity>, table, factors);
    };
    with_tables<AdamEntry, capacity>(op.parameters.size(), make, start);
  });
}

void run(CudaBackend& backend, const Sgd& op) {
  if (op.parameters.empty()) return;
  const auto make = [&](std::size_t k) {
    float* const w = op.parameters[k].data<float>();
    float* const velocity = op.velocities[k].data<float>();
    const float* const gradient = op.gradients[k].data<float>();
    return SgdEntry{.w = w,
                    .gradient = gradient,
                    .velocity = velocity,
                    .size = op.parameters[k].size(),
                    .decay = static_cast<float>(op.decay[k]),
                    .first_piece = 0,
                    .boundaries = on_16_bytes(w, gradient, velocity)};
  };
  with_capacity(op.parameters.size(), [&]<int capacity>(std::integral_constant<int, capacity>) {
    const auto start = [&](const Table<SgdEntry, capacity>& table) {
      launch(backend.stream(), table.pieces, block_threads, 0, sgd<capacity>, table,
             op.rate.data<float>(), data_or_null<float>(op.factor),
             static_cast<float>(op.momentum));
    };
    with_tables<SgdEntry, capacity>(op.parameters.size(), make, start);
  });
}

}  // namespace longhand::cuda
