#include "autograd/linear_cross_entropy.h"

#include <algorithm>

#include "autograd/heads.h"
#include "autograd/tape.h"
#include "core/contract/blocks.h"
#include "core/contract/combine.h"
#include "core/contract/elementwise.h"
#include "core/contract/gather.h"
#include "core/contract/loss.h"
#include "core/contract/matmul.h"
#include "core/contract/reduce.h"
#include "core/error.h"

namespace longhand {
namespace {

/// The weight: a value, or a matrix in blocks, which has no gradient.
struct Factor {
  Var value = {};
  BlockMatrix blocks = {};

  std::int64_t rows() const { return blocks ? blocks.rows() : value.value().rows(); }
  /// c = x weight^T
  void logits(const Tensor& x, const Tensor& c) const {
    if (blocks) {
      x.backend()(BlockMatmul{.a = x, .w = blocks, .c = c});
    } else {
      x.backend()(Matmul{.a = x, .b = value.value(), .transpose_b = true, .c = c});
    }
  }
  /// dx = dlogits weight
  void gradient(const Tensor& dlogits, const Tensor& dx) const {
    if (blocks) {
      dx.backend()(BlockMatmul{.a = dlogits, .w = blocks, .transpose_w = false, .c = dx});
    } else {
      dx.backend()(Matmul{.a = dlogits, .b = value.value(), .c = dx});
    }
  }
};

/// Computes the loss and the gradients of x and weight, one block of rows after another. The
/// gradients must still be divided by the total weight of all targets.
class Pass {
 public:
  Pass(const Var& x, const Factor& weight, const Tensor& targets,
       const LinearCrossEntropyOptions& o)
      : x_(x.value()),
        weight_(weight),
        targets_(targets),
        o_(o),
        backend_(x.backend()),
        master_(master_type(x.value().dtype())) {
    const bool gradients = recorded({&x, &weight.value});
    if (gradients && x.wants_grad()) dx = make({targets.rows(), x_.columns()});
    if (gradients && weight.value.wants_grad()) dweight = make(weight.value.shape());
    if (dx || dweight) one_ = filled(1);
  }

  /// Processes all blocks of rows and returns the loss, a tensor [1].
  Tensor run() {
    const std::int64_t rows = targets_.rows(), at_once = std::min(rows, o_.at_once);
    const std::int64_t parts = rows == 0 ? 0 : (rows + at_once - 1) / at_once;
    losses_ = make({parts});
    hits_ = make({parts});
    totals_ = make({parts});
    logits_ = make({at_once, weight_.rows()});
    log_sum_ = make({at_once, o_.groups});
    if (o_.rows) gathered_ = Tensor(backend_, {at_once, x_.columns()}, x_.dtype());
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t first = part * at_once;
      take(part, first, std::min(at_once, rows - first));
    }
    if (parts == 0 && dweight) backend_(Fill{.value = 0, .y = dweight});
    total = sum(totals_);
    // If all weights are 0, the loss and its gradients must be 0. Raising the total weight to at
    // least 1e-30 avoids the quotient 0 / 0.
    combine(Combination::largest, total, filled(1e-30), total);
    if (o_.hits) mean_into(hits_, o_.hits);
    const Tensor loss = make({1});
    mean_into(losses_, loss);
    return loss;
  }

  Tensor dx, dweight;  // gradients of x and weight; empty if not required
  Tensor total;        // [1]: the sum of the weights of all targets, at least 1e-30

 private:
  Tensor make(const Shape& shape) const { return Tensor(backend_, shape, master_); }
  Tensor filled(double value) const {
    const Tensor x = make({1});
    backend_(Fill{.value = value, .y = x});
    return x;
  }
  void combine(Combination f, const Tensor& a, const Tensor& b, const Tensor& y) const {
    backend_(Combine{.f = f, .a = a, .b = b, .y = y});
  }
  Tensor sum(const Tensor& x) const {
    const Tensor y = make({1});
    backend_(Reduce{.reduction = Reduction::sum, .x = x.reshape({1, x.size()}), .y = y});
    return y;
  }
  /// Stores in y the mean over all rows. `means` contains the means over the blocks of rows, and is
  /// multiplied in place by the total weight of each block.
  void mean_into(const Tensor& means, const Tensor& y) const {
    combine(Combination::product, means, totals_, means);
    combine(Combination::quotient, sum(means), total, y);
  }

  Tensor rows_of_x(std::int64_t first, std::int64_t count) const {
    if (!o_.rows) return x_.slice(first, count);
    const Tensor y = gathered_.slice(0, count);
    backend_(Embedding{.table = x_, .ids = o_.rows.slice(first, count), .y = y});
    return y;
  }

  void take(std::int64_t part, std::int64_t first, std::int64_t count) const {
    const Tensor x = rows_of_x(first, count), logits = logits_.slice(0, count);
    const Tensor targets = targets_.slice(first, count), log_sum = log_sum_.slice(0, count);
    const Tensor weights = o_.weights ? o_.weights.slice(first, count) : Tensor();
    const Tensor part_total = totals_.slice(part, 1);
    weight_.logits(x, logits);
    backend_(CrossEntropy{.logits = logits,
                          .targets = targets,
                          .weights = weights,
                          .groups = o_.groups,
                          .loss = losses_.slice(part, 1),
                          .hits = hits_.slice(part, 1),
                          .log_sum = log_sum,
                          .total = part_total});
    if (!one_) return;
    backend_(CrossEntropyBackward{.logits = logits,
                                  .targets = targets,
                                  .weights = weights,
                                  .groups = o_.groups,
                                  .log_sum = log_sum,
                                  .total = one_,
                                  .dloss = one_,
                                  .dlogits = logits});
    if (dx) weight_.gradient(logits, dx.slice(first, count));
    if (dweight) {
      backend_(Matmul{
          .a = logits, .b = x, .transpose_a = true, .c = dweight, .beta = part == 0 ? 0.0 : 1.0});
    }
  }

  const Tensor& x_;
  const Factor& weight_;
  const Tensor& targets_;
  const LinearCrossEntropyOptions& o_;
  Backend& backend_;
  DType master_;
  Tensor one_;                          // the constant 1, if gradients are required
  Tensor losses_, hits_, totals_;       // loss, accuracy and total weight of each block of rows
  Tensor logits_, log_sum_, gathered_;  // values of the current block of rows
};

Var loss_of(const Var& x, const Factor& weight, const Tensor& targets,
            const LinearCrossEntropyOptions& options) {
  LONGHAND_CHECK(options.at_once >= 1, "linear_cross_entropy: at_once: expected at least 1, got ",
                 options.at_once);
  const std::int64_t rows = options.rows ? options.rows.size() : x.value().rows();
  LONGHAND_CHECK((targets.shape() == Shape{rows, options.groups}),
                 "linear_cross_entropy: targets: expected ", Shape{rows, options.groups}, ", got ",
                 targets.shape());
  Pass pass(x, weight, targets, options);
  const Tensor loss = pass.run();
  return record(
      "linear_cross_entropy", {&x, &weight.value}, loss,
      [x_sink = x.sink(), shape = x.shape(), type = x.value().dtype(), w_sink = weight.value.sink(),
       dx = pass.dx, dweight = pass.dweight, total = pass.total,
       ids = options.rows](const Tensor& dloss) {
        Backend& run = dloss.backend();
        const Tensor factor = empty_like(total);
        run(Combine{.f = Combination::quotient, .a = dloss, .b = total, .y = factor});
        const auto times_factor = [&](const Tensor& gradient) {
          run(Combine{.f = Combination::product, .a = gradient, .b = factor, .y = gradient});
          return gradient;
        };
        if (dweight) w_sink.add(times_factor(dweight));
        if (!dx) return;
        Tensor of_x = times_factor(dx);
        if (ids) {
          of_x = Tensor(run, shape, dx.dtype());
          run(EmbeddingBackward{.ids = ids, .dy = dx, .dtable = of_x});
        }
        if (type != of_x.dtype()) {
          const Tensor converted(run, shape, type);
          run(Copy{.x = of_x, .y = converted});
          of_x = converted;
        }
        x_sink.add(of_x);
      });
}

}  // namespace

Var linear_cross_entropy(const Var& x, const Var& weight, const Tensor& targets,
                         const LinearCrossEntropyOptions& options) {
  return loss_of(x, {.value = weight}, targets, options);
}

Var linear_cross_entropy(const Var& x, const BlockMatrix& weight, const Tensor& targets,
                         const LinearCrossEntropyOptions& options) {
  return loss_of(x, {.blocks = weight}, targets, options);
}

}  // namespace longhand
