#include "autograd/loss.h"

#include "autograd/combine.h"
#include "autograd/elementwise.h"
#include "autograd/reduce.h"
#include "autograd/tape.h"
#include "core/contract/loss.h"
#include "core/error.h"
#include "core/formulas.h"

namespace longhand {

Var cross_entropy(const Var& logits, const Tensor& targets, const CrossEntropyOptions& options) {
  Backend& backend = logits.backend();
  const DType master = master_type(logits.value().dtype());
  const Tensor loss(backend, {1}, master), total(backend, {1}, master);
  const Tensor log_sum(backend, {logits.value().rows(), options.groups}, master);
  backend(CrossEntropy{.logits = logits.value(),
                       .targets = targets,
                       .weights = options.weights,
                       .groups = options.groups,
                       .loss = loss,
                       .hits = options.hits,
                       .log_sum = log_sum,
                       .total = total});
  return record(
      "cross_entropy", {&logits}, loss,
      [x = logits.value(), sink = logits.sink(), targets, weights = options.weights,
       groups = options.groups, consume = options.consume_logits, log_sum,
       total](const Tensor& dloss) {
        dloss.backend()(CrossEntropyBackward{.logits = x,
                                             .targets = targets,
                                             .weights = weights,
                                             .groups = groups,
                                             .log_sum = log_sum,
                                             .total = total,
                                             .dloss = dloss,
                                             .dlogits = consume ? Target(x) : sink.target()});
        if (consume) sink.add(x);
      });
}

Var binary_cross_entropy(const Var& logits, const Tensor& targets, const Tensor& weights) {
  Backend& backend = logits.backend();
  const DType master = master_type(logits.value().dtype());
  const Tensor loss(backend, {1}, master), total(backend, {1}, master);
  backend(BinaryCrossEntropy{.logits = logits.value(),
                             .targets = targets,
                             .weights = weights,
                             .loss = loss,
                             .total = total});
  return record("binary_cross_entropy", {&logits}, loss,
                [logits, targets, weights, total](const Tensor& dloss) {
                  dloss.backend()(BinaryCrossEntropyBackward{.logits = logits.value(),
                                                             .targets = targets,
                                                             .weights = weights,
                                                             .total = total,
                                                             .dloss = dloss,
                                                             .dlogits = logits.sink().target()});
                });
}

Var squared_error(const Var& x, const Tensor& targets) {
  // subtract() would broadcast operands of different shapes instead of reporting an error.
  LONGHAND_CHECK(x.shape() == targets.shape(), "squared_error: targets: expected ", x.shape(),
                 ", the shape of x, got ", targets.shape());
  return mean(activate(Activation::square, subtract(cast(x, targets.dtype()), targets)));
}

}  // namespace longhand
