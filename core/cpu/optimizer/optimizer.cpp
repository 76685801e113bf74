#include "core/contract/optimizer.h"

#include <cmath>
#include <span>
#include <vector>

#include "core/cpu/chunks.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/optimizer/kernels.h"
#include "core/cpu/reduce/kernels.h"

namespace longhand::cpu {
namespace {

/// One chunk of one tensor in a list of tensors.
struct Piece {
  std::size_t tensor;
  std::int64_t begin, size;
};

/// Cuts all tensors into chunks of at most `grain` entries. The threads can then process many small
/// tensors with only one synchronization, not one per tensor.
std::vector<Piece> pieces_of(const std::vector<Tensor>& tensors) {
  std::vector<Piece> pieces;
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    for (std::int64_t begin = 0; begin < tensors[k].size(); begin += grain) {
      pieces.push_back({k, begin, std::min(grain, tensors[k].size() - begin)});
    }
  }
  return pieces;
}

/// Calls body(i, pieces[i]) for every index i. A thread processes consecutive small pieces
/// together.
template <class Body>
void for_each_piece(ThreadPool& threads, const std::vector<Piece>& pieces, Body&& body) {
  std::vector<std::int64_t> cuts{0};
  std::int64_t gathered = 0;
  for (std::int64_t p = 0; p < std::ssize(pieces); ++p) {
    gathered += pieces[static_cast<std::size_t>(p)].size;
    if (gathered >= grain || p + 1 == std::ssize(pieces)) {
      cuts.push_back(p + 1);
      gathered = 0;
    }
  }
  parallel_for(threads, std::ssize(cuts) - 1, 1, [&](std::int64_t run, std::int64_t) {
    const auto end = static_cast<std::size_t>(cuts[static_cast<std::size_t>(run) + 1]);
    for (auto p = static_cast<std::size_t>(cuts[static_cast<std::size_t>(run)]); p < end; ++p) {
      body(p, pieces[p]);
    }
  });
}

}  // namespace

void run(CpuBackend& backend, const SquareSums& op) {
  static_assert(grain == SquareSums::piece);
  const auto& k = kernels_for<ReduceKernels<float>>(backend.isa());
  for_each_piece(backend.threads(), pieces_of(op.tensors), [&](std::size_t, const Piece& piece) {
    const float* const x = op.tensors[piece.tensor].data<float>() + piece.begin;
    op.sums[piece.tensor].data<float>()[piece.begin / grain] =
        k.reduce(Reduction::square_sum, x, piece.size);
  });
}

void run(CpuBackend&, const GlobalNorm& op) {
  const std::span squares(op.squares.data<float>(), static_cast<std::size_t>(op.squares.size()));
  double sum = 0;
  for (const float s : squares) sum += s;
  const double norm = std::sqrt(sum);
  *op.norm.data<float>() = static_cast<float>(norm);

  float& factor = *op.factor.data<float>();
  bool sound = factor != 0 && std::isfinite(*op.norm.data<float>());
  if (op.losses) {
    for (const float loss : std::span(op.losses.data<float>(), op.losses.bytes() / sizeof(float))) {
      sound = sound && std::isfinite(loss);
    }
  }
  factor = op.largest == 0 ? 1.0f : static_cast<float>(std::min(1.0, op.largest / norm));
  if (!sound) factor = 0;
}

void run(CpuBackend& backend, const Adam& op) {
  const float factor = op.factor ? *op.factor.data<float>() : 1.0f;
  if (factor == 0 || op.parameters.empty()) return;
  const float* const now = op.now.data<float>();
  const auto factors = [&](double decay) {
    return AdamFactors{.gradient = factor,
                       .coupled = static_cast<float>(op.decoupled ? 0 : decay),
                       .kept = static_cast<float>(op.decoupled ? 1 - now[0] * decay : 1),
                       .beta1 = static_cast<float>(op.beta1),
                       .rest1 = static_cast<float>(1 - op.beta1),
                       .beta2 = static_cast<float>(op.beta2),
                       .rest2 = static_cast<float>(1 - op.beta2),
                       .rate = now[1],
                       .scale_v = now[2],
                       .epsilon = static_cast<float>(op.epsilon)};
  };
  std::vector<AdamFactors> by_tensor;
  for (const double decay : op.decay) by_tensor.push_back(factors(decay));

  for_each_piece(backend.threads(), pieces_of(op.parameters), [&](std::size_t, const Piece& piece) {
    const std::size_t k = piece.tensor;
    float* w = op.parameters[k].data<float>() + piece.begin;
    const float* gradient = op.gradients[k].data<float>() + piece.begin;
    visit_activation(op.m[k].dtype(), [&]<class M>(M) {
      visit_activation(op.v[k].dtype(), [&]<class V>(V) {
        kernels_for<AdamKernels<M, V>>(backend.isa())
            .step(by_tensor[k], w, gradient, op.m[k].template data<M>() + piece.begin,
                  op.v[k].template data<V>() + piece.begin, piece.size);
      });
    });
  });
}

void run(CpuBackend& backend, const Sgd& op) {
  const float factor = op.factor ? *op.factor.data<float>() : 1.0f;
  if (factor == 0 || op.parameters.empty()) return;
  const float rate = *op.rate.data<float>();
  const auto& kernels = kernels_for<SgdKernels>(backend.isa());
  for_each_piece(backend.threads(), pieces_of(op.parameters), [&](std::size_t, const Piece& piece) {
    const std::size_t k = piece.tensor;
    const SgdFactors factors{.gradient = factor,
                             .decay = static_cast<float>(op.decay[k]),
                             .momentum = static_cast<float>(op.momentum),
                             .rate = rate};
    kernels.step(factors, op.parameters[k].data<float>() + piece.begin,
                 op.gradients[k].data<float>() + piece.begin,
                 op.velocities[k].data<float>() + piece.begin, piece.size);
  });
}

}  // namespace longhand::cpu
