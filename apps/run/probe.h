#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/run/evaluation.h"

/// What the residual stream holds, told by the vectors that stand for tokens (Awasthi and Gupta
/// 2023, section 4).
namespace longhand::app {

/// The vectors of all tokens at either end of a model, [tokens, width] each.
struct Bases {
  Tensor encoder;  // rows of the embedding
  Tensor decoder;  // rows of an output layer's weight: one for each class
};
Bases bases_of(const nn::Decoder& model, std::int64_t head = 0);

/// Where in a block the stream is looked at.
enum class StreamPlace { before_mlp, after_mlp };

/// The stream after the attention of a layer, or after its feed forward, for every token of the
/// batch: its products with the vectors of a basis, [tokens, classes].
struct Projection {
  std::int64_t layer = 0;
  StreamPlace place = StreamPlace::before_mlp;
  Tensor encoder, decoder;
};
std::vector<Projection> project(nn::Decoder& model, const nn::Batch& batch, const Bases& bases);

/// How far a set of vectors, or two sets, are from being orthogonal: |cos| of the angles between
/// different ones. Independent random directions of width d have a root mean square of 1/sqrt(d).
struct Cosines {
  double mean = 0, root_mean_square = 0, largest = 0;
};
Cosines cosines_within(const Tensor& rows);
Cosines cosines_between(const Tensor& rows, const Tensor& others);
/// Standard deviation of the rows' lengths over their mean.
double spread_of_lengths(const Tensor& rows);

/// The two mechanisms of a model that sorts, over samples of the sorting task:
///   minimum     after the first attention the mark ⊥ points at the least number: its largest
///               product with the decoder basis is that number's
///   successor   after the second, a number of the output that has a greater one in the input
///               points at itself and at the next greater: these two products are the largest
struct Mechanisms {
  std::int64_t minimum_hits = 0, minimum_count = 0;
  std::int64_t successor_hits = 0, successor_count = 0;
};
Mechanisms sorting_mechanisms(nn::Decoder& model, const tasks::Task& task,
                              const EvaluationOptions& options);

/// Projections of one token of a sequence, every layer and place on either basis, as HTML; the
/// `named` largest products have their tokens' names.
std::string projection_pictures(nn::Decoder& model, const tasks::Task& task,
                                std::span<const std::int32_t> tokens, std::int64_t position,
                                std::int64_t named = 3);
/// The numbers of near-orthogonality, as HTML.
std::string bases_table(const Bases& bases);

}  // namespace longhand::app
