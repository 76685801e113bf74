#include "core/contract/loss.h"

#include "core/formulas.h"
#include "cuda/cuda_backend.h"
#include "cuda/first_largest.h"
#include "cuda/launch.h"
#include "cuda/row.h"
#include "cuda/visit.h"

namespace longhand::cuda {
namespace {

/// Sums over some or all targets, from which the loss is computed: the weights, the weighted
/// losses, and the weights of the correctly predicted targets. They are f64 because there may be
/// millions of targets.
struct LossSums {
  double weight, loss, hits;

  __device__ __forceinline__ LossSums exchanged(int step) const {
    return {exchange(weight, step), exchange(loss, step), exchange(hits, step)};
  }
  __device__ __forceinline__ LossSums operator+(const LossSums& more) const {
    return {weight + more.weight, loss + more.loss, hits + more.hits};
  }
};

struct LossResults {
  float *total, *loss, *hits;  // `hits` is null if the share of hits is not required
};

/// sum / total, or 0 if `total` is 0.
template <class F>
__device__ __forceinline__ F mean(F sum, F total) {
  return total == 0 ? F(0) : sum / total;
}

__device__ __forceinline__ void write(const LossSums& sums, const LossResults& results) {
  *results.total = static_cast<float>(sums.weight);
  *results.loss = static_cast<float>(mean(sums.loss, sums.weight));
  if (results.hits) *results.hits = static_cast<float>(mean(sums.hits, sums.weight));
}

/// The last step of the kernels that compute a loss: adds up the sums of the block's threads. If
/// the grid has a single block, writes the results. Otherwise stores the block's sums in `parts`.
__device__ __forceinline__ void finish_block(LossSums sums, LossSums* parts,
                                             const LossResults& results) {
  sums = Block::reduce(sums, Sum{});
  if (threadIdx.x != 0) return;
  if (gridDim.x == 1) {
    write(sums, results);
  } else {
    parts[blockIdx.x] = sums;
  }
}

__global__ void __launch_bounds__(block_threads)
    add_up_losses(const LossSums* parts, int count, const LossResults results) {
  LossSums sums{0, 0, 0};
  for (int p = static_cast<int>(threadIdx.x); p < count; p += block_threads) {
    sums = sums + parts[p];
  }
  sums = Block::reduce(sums, Sum{});
  if (threadIdx.x == 0) write(sums, results);
}

/// Calls start(blocks, parts), which launches a loss kernel with `blocks` thread blocks. The number
/// of blocks is `wanted`, but at least 1 and at most 528. If there are several blocks, each stores
/// its sums in `parts`. A second kernel then adds them up and writes the results.
template <class Start>
void run_loss(CudaBackend& backend, std::int64_t wanted, const LossResults& results,
              Start&& start) {
  constexpr std::int64_t most_blocks = 528;
  const std::int64_t blocks = std::clamp<std::int64_t>(wanted, 1, most_blocks);
  Tensor parts;
  if (blocks > 1) {
    parts = Tensor(backend, Shape{blocks * std::int64_t{sizeof(LossSums)}}, DType::u8);
  }
  start(blocks, static_cast<LossSums*>(parts.address()));
  if (blocks == 1) return;
  launch(backend.stream(), 1, block_threads, 0, add_up_losses,
         static_cast<const LossSums*>(parts.address()), static_cast<int>(blocks), results);
}

// A choice selects one of `classes` classes and has one logit per class. Each row of the tensor
// `logits` contains the logits of one choice per group (core/contract/loss.h). Below, choices are
// numbered across all rows. The logit of choice i for class c is entry i * classes + c.

template <class T>
struct Choices {
  const T* logits;
  const std::int32_t* targets;
  const float* weights;  // null if all weights are 1
  std::int64_t count;
  int classes;
};

/// The state of a sum over the logits of one row and group. `top` is the maximum of the logits that
/// were read so far, with the first class where it occurs. `sum` is the sum of exp(x - maximum)
/// over these logits x.
struct LogSum {
  FirstLargest top;
  float sum;

  __device__ __forceinline__ LogSum exchanged(int step) const {
    return {top.exchanged(step), exchange(sum, step)};
  }
  /// The sum of exp(x - largest) over all logits x that were read so far. `largest` must be at
  /// least their maximum.
  __device__ __forceinline__ float against(float largest) const {
    return sum == 0 ? 0.0f : sum * expf(top.value - largest);
  }
  /// Returns the state after `count` more packs of logits. The first pack begins at class `first`,
  /// and each further pack begins `step` classes after the previous pack.
  template <int width, int count>
  __device__ __forceinline__ LogSum with(const Floats<width> (&packs)[count], int first,
                                         int step) const {
    FirstLargest largest = top;
#pragma unroll
    for (int q = 0; q < count; ++q) {
#pragma unroll
      for (int k = 0; k < width; ++k) largest.see(packs[q].at[k], first + q * step + k);
    }
    float total = against(largest.value);
#pragma unroll
    for (int q = 0; q < count; ++q) {
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const float x = packs[q].at[k];
        total += x == -INFINITY ? 0.0f : expf(x - largest.value);
      }
    }
    return {largest, total};
  }
  struct Join {
    __device__ __forceinline__ LogSum operator()(const LogSum& a, const LogSum& b) const {
      const FirstLargest top = FirstLargest::Better{}(a.top, b.top);
      return {top, a.against(top.value) + b.against(top.value)};
    }
  };
};

/// A team of threads processes the logits of one row and group at a time and reads each logit only
/// once. A thread loads several packs of logits together, computes their maximum, and then adds
/// their exponentials.
template <int width, class Team, class T>
__global__ void __launch_bounds__(block_threads)
    cross_entropy(const Choices<T> r, float* log_sum, LossSums* parts, const LossResults results) {
  constexpr int teams = Team::per_block(block_threads);
  constexpr int together = 8 / width;  // number of packs that a thread loads together
  LossSums sums{0, 0, 0};
  // All teams of a block make the same number of iterations, because reduce() requires all lanes of
  // a warp.
  for (std::int64_t first = std::int64_t{blockIdx.x} * teams; first < r.count;
       first += std::int64_t{gridDim.x} * teams) {
    const std::int64_t i = first + Team::index();
    const int classes = i < r.count ? r.classes : 0;
    const T* x = r.logits + i * r.classes;
    LogSum all{{-INFINITY, 0}, 0};
    for (int begin = Team::rank() * width; begin < classes;
         begin += Team::threads * width * together) {
      Floats<width> a[together];
#pragma unroll
      for (int q = 0; q < together; ++q) {
        const int c = begin + q * Team::threads * width;
        if (c < classes) {
          a[q] = load<width>(x + c);
        } else {
#pragma unroll
          for (int k = 0; k < width; ++k) a[q].at[k] = -INFINITY;
        }
      }
      all = all.with(a, begin, Team::threads * width);
    }
    all = Team::reduce(all, typename LogSum::Join{});
    if (Team::rank() != 0 || i >= r.count) continue;

    const float log_total = all.sum == 0 ? NAN : logf(all.sum);
    log_sum[i] = all.top.value + log_total;
    const std::int64_t t = r.targets[i];
    if (t < 0) continue;
    const double w = r.weights ? r.weights[i] : 1.0f;
    const float x_t = t < classes ? to_float(x[t]) : NAN;
    sums.weight += w;
    // The loss is log_sum_i - x_t, where x_t is the logit of the target. It is computed without
    // log_sum_i, because the rounding of a large log_sum_i would spoil a small loss.
    sums.loss += w * (double{log_total} + (double{all.top.value} - double{x_t}));
    if (t == all.top.index) sums.hits += w;
  }
  finish_block(sums, parts, results);
}

/// Calls body(team) with the team of threads (Lanes or Block, cuda/team.h) that processes the
/// logits of one row and group. The team's size is chosen so that few lanes are idle.
template <class Body>
void with_team(std::int64_t classes, int width, Body&& body) {
  if (classes <= 4 * width) return body(Lanes<1>{});
  if (classes <= 32 * width) return body(Lanes<8>{});
  if (classes <= 4096) return body(Lanes<32>{});
  body(Block{});
}

/// For class c of choice i (one group of a row), with the weight w_i and the sum `total` of all
/// weights,
///   dlogits_ic = dloss w_i / total (exp(logits_ic - log_sum_i) - one_ic),
/// where one_ic is 1 if c is the target, otherwise 0. Each thread computes one pack of consecutive
/// entries. A pack may contain entries of several choices.
template <int width, class T>
__global__ void __launch_bounds__(block_threads)
    cross_entropy_backward(const Choices<T> r, const float* log_sum, const float* total,
                           const float* dloss, Out<T> dlogits) {
  const std::int64_t at = thread_in_grid() * width;
  if (at >= r.count * r.classes) return;
  const float factor = mean(*dloss, *total);
  Floats<width> x = load<width>(r.logits + at);
  RowColumn here = row_column(at, r.classes);  // here.row is the choice, here.column the class
  std::int64_t t = 0;
  float scale = 0, shift = 0;
  const auto enter_choice = [&] {
    t = r.targets[here.row];
    scale = r.weights ? factor * r.weights[here.row] : factor;
    if (t >= r.classes) scale = NAN;
    shift = log_sum[here.row];
  };
  enter_choice();
#pragma unroll
  for (int k = 0; k < width; ++k) {
    const float p = expf(x.at[k] - shift);
    x.at[k] = t < 0 ? 0.0f : scale * (p - (here.column == t ? 1.0f : 0.0f));
    if (++here.column == r.classes && k + 1 < width) {
      here = {here.row + 1, 0};
      enter_choice();
    }
  }
  dlogits.put(at, x);
}

template <class T, class Op>
Choices<T> choices_of(const Op& op) {
  const std::int64_t classes = op.logits.columns() / op.groups;
  LONGHAND_CHECK(classes < (1 << 30), Op::name, ": expected fewer than 2^30 classes on cuda, got ",
                 classes);
  return {.logits = op.logits.template data<T>(),
          .targets = op.targets.template data<std::int32_t>(),
          .weights = data_or_null<float>(op.weights),
          .count = op.targets.size(),
          .classes = static_cast<int>(classes)};
}

template <class T>
struct Binary {
  const T* logits;
  const float *targets, *weights;  // `weights` is null if all weights are 1
  std::int64_t count;
};

/// The loss of a logit x_i with the target t_i is max(x_i, 0) - x_i t_i + log(1 + exp(-|x_i|)).
template <class T>
__global__ void __launch_bounds__(block_threads)
    binary_cross_entropy(const Binary<T> r, LossSums* parts, const LossResults results) {
  LossSums sums{0, 0, 0};
  for (std::int64_t i = thread_in_grid(); i < r.count; i += threads_in_grid()) {
    const float x = to_float(r.logits[i]), t = r.targets[i], w = r.weights ? r.weights[i] : 1.0f;
    sums.weight += w;
    sums.loss += w * (fmaxf(x, 0.0f) - x * t + log1pf(expf(-fabsf(x))));
  }
  finish_block(sums, parts, results);
}

/// dlogits_i = dloss w_i / total (sigmoid(x_i) - t_i), where x_i are the logits, t_i the targets,
/// w_i the weights and total their sum.
template <int width, class T>
__global__ void __launch_bounds__(block_threads)
    binary_backward(const Binary<T> r, const float* total, const float* dloss, Out<T> dlogits) {
  const std::int64_t i = thread_in_grid() * width;
  if (i >= r.count) return;
  const float factor = mean(*dloss, *total);
  Floats<width> x = load<width>(r.logits + i);
  const Floats<width> t = load<width>(r.targets + i);
#pragma unroll
  for (int k = 0; k < width; ++k) {
    const float w = r.weights ? r.weights[i + k] : 1.0f;
    x.at[k] = factor * w * (sigmoid(x.at[k]) - t.at[k]);
  }
  dlogits.put(i, x);
}

template <class T, class Op>
Binary<T> binary_of(const Op& op) {
  return {.logits = op.logits.template data<T>(),
          .targets = op.targets.template data<float>(),
          .weights = data_or_null<float>(op.weights),
          .count = op.logits.size()};
}

}  // namespace

void run(CudaBackend& backend, const CrossEntropy& op) {
  visit_activation(op.logits.dtype(), [&]<class T>(T) {
    const auto r = choices_of<T>(op);
    const LossResults results{op.total.data<float>(), op.loss.data<float>(),
                              data_or_null<float>(op.hits)};
    with_width<T>(on_16_bytes(r.logits) && r.classes % full_width<T> == 0, [&](auto width) {
      with_team(r.classes, width, [&](auto team) {
        using Team = decltype(team);
        constexpr int teams = Team::per_block(block_threads);
        run_loss(backend, (r.count + teams - 1) / teams, results,
                 [&](std::int64_t blocks, LossSums* parts) {
                   launch(backend.stream(), blocks, block_threads, 0, cross_entropy<width, Team, T>,
                          r, op.log_sum.data<float>(), parts, results);
                 });
      });
    });
  });
}

void run(CudaBackend& backend, const CrossEntropyBackward& op) {
  if (!op.dlogits) return;
  visit_activation(op.logits.dtype(), [&]<class T>(T) {
    const auto r = choices_of<T>(op);
    const Out<T> dlogits = out<T>(op.dlogits);
    const std::int64_t size = op.logits.size();
    with_width<T>(on_16_bytes(r.logits, dlogits.y) && size % full_width<T> == 0, [&](auto width) {
      launch(backend.stream(), grid_of(size / width), block_threads, 0,
             cross_entropy_backward<width, T>, r, op.log_sum.data<float>(), op.total.data<float>(),
             op.dloss.data<float>(), dlogits);
    });
  });
}

void run(CudaBackend& backend, const BinaryCrossEntropy& op) {
  visit_activation(op.logits.dtype(), [&]<class T>(T) {
    const auto r = binary_of<T>(op);
    const LossResults results{op.total.data<float>(), op.loss.data<float>(), nullptr};
    run_loss(backend, grid_of(r.count), results, [&](std::int64_t blocks, LossSums* parts) {
      launch(backend.stream(), blocks, block_threads, 0, binary_cross_entropy<T>, r, parts,
             results);
    });
  });
}

void run(CudaBackend& backend, const BinaryCrossEntropyBackward& op) {
  if (!op.dlogits) return;
  visit_activation(op.logits.dtype(), [&]<class T>(T) {
    const auto r = binary_of<T>(op);
    const Out<T> dlogits = out<T>(op.dlogits);
    const bool fits = on_16_bytes(r.logits, r.targets, dlogits.y) && r.count % full_width<T> == 0;
    with_width<T>(fits, [&](auto width) {
      launch(backend.stream(), grid_of(r.count / width), block_threads, 0,
             binary_backward<width, T>, r, op.total.data<float>(), op.dloss.data<float>(), dlogits);
    });
  });
}

}  // namespace longhand::cuda
