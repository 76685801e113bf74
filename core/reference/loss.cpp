#include "core/contract/loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/contract/require.h"
#include "core/formulas.h"
#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {
namespace {

void require_targets(std::string_view op, const Tensor& targets, std::int64_t classes) {
  const auto* t = targets.data<std::int32_t>();
  for (std::int64_t i = 0; i < targets.size(); ++i) {
    LONGHAND_CHECK(t[i] < classes, op, ": targets: expected classes below ", classes, ", got ",
                   t[i], " at index ", i);
  }
}

/// Returns sum / total, or 0 if `total` is 0.
double mean(double sum, double total) { return total == 0 ? 0 : sum / total; }

}  // namespace

// Each row of logits contains `groups` independent choices among `classes` classes. In the
// functions below, choice g of a row has the index i = row * groups + g among the choices of all
// rows. The logit of choice i for class c is entry i * classes + c of the logits.

void run(ReferenceBackend&, const CrossEntropy& op) {
  const std::int64_t classes = op.logits.columns() / op.groups;
  require_targets(CrossEntropy::name, op.targets, classes);
  const Rows logits(op.logits), weights(op.weights);
  const Result loss(op.loss), hits(op.hits), log_sum(op.log_sum), total(op.total);
  const auto* targets = op.targets.data<std::int32_t>();

  double sum_w = 0, sum_loss = 0, sum_hits = 0;
  for (std::int64_t i = 0; i < op.targets.size(); ++i) {
    const auto x = [&](std::int64_t c) { return logits(i * classes + c); };
    std::int64_t largest = 0;  // class of the largest logit, the first class if several are equal
    for (std::int64_t c = 1; c < classes; ++c) {
      if (x(c) > x(largest)) largest = c;
    }
    double sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(x(c) - x(largest));
    const double log_sum_i = x(largest) + std::log(sum);
    log_sum.put(i, log_sum_i);

    const std::int64_t t = targets[i];
    if (t < 0) continue;
    const double w = op.weights ? weights(i) : 1;
    sum_w += w;
    sum_loss += w * (log_sum_i - x(t));
    sum_hits += t == largest ? w : 0;
  }
  total.put(0, sum_w);
  loss.put(0, mean(sum_loss, sum_w));
  hits.put(0, mean(sum_hits, sum_w));
}

void run(ReferenceBackend&, const CrossEntropyBackward& op) {
  const std::int64_t classes = op.logits.columns() / op.groups;
  require_targets(CrossEntropyBackward::name, op.targets, classes);
  const Rows logits(op.logits), weights(op.weights), log_sum(op.log_sum);
  const Result dlogits(op.dlogits);
  const auto* targets = op.targets.data<std::int32_t>();
  const double total = op.total.item(), dloss = op.dloss.item();

  for (std::int64_t i = 0; i < op.targets.size(); ++i) {
    const std::int64_t t = targets[i];
    const double w = t < 0 ? 0 : op.weights ? weights(i) : 1;
    const double scale = dloss * mean(w, total);
    for (std::int64_t c = 0; c < classes; ++c) {
      const std::int64_t igc = i * classes + c;
      const double p = std::exp(logits(igc) - log_sum(i));
      dlogits.put(igc, t < 0 ? 0 : scale * (p - (c == t ? 1 : 0)));
    }
  }
}

void run(ReferenceBackend&, const BinaryCrossEntropy& op) {
  const Rows x(op.logits), t(op.targets), weights(op.weights);
  const Result loss(op.loss), total(op.total);

  double sum_w = 0, sum_loss = 0;
  for (std::int64_t i = 0; i < op.logits.size(); ++i) {
    const double w = op.weights ? weights(i) : 1;
    sum_w += w;
    sum_loss += w * (std::max(x(i), 0.0) - x(i) * t(i) + std::log1p(std::exp(-std::abs(x(i)))));
  }
  total.put(0, sum_w);
  loss.put(0, mean(sum_loss, sum_w));
}

void run(ReferenceBackend&, const BinaryCrossEntropyBackward& op) {
  const Rows x(op.logits), t(op.targets), weights(op.weights);
  const Result dlogits(op.dlogits);
  const double total = op.total.item(), dloss = op.dloss.item();

  for (std::int64_t i = 0; i < op.logits.size(); ++i) {
    const double w = op.weights ? weights(i) : 1;
    dlogits.put(i, dloss * mean(w, total) * (sigmoid(x(i)) - t(i)));
  }
}

}  // namespace longhand::reference
