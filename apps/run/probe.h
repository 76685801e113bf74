#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/run/evaluation.h"

/// The contents of the residual stream, described by the vectors that represent tokens (Awasthi and
/// Gupta 2023, section 4).
namespace longhand::app {

/// The vectors of all tokens at the input and output of a model, [tokens, width] each.
struct Bases {
  Tensor encoder;  // rows of the embedding
  Tensor decoder;  // rows of an output layer's weight, one per class
};
Bases bases_of(const nn::Decoder& model, std::int64_t head = 0);

/// The point of a block at which the stream is examined.
enum class StreamPlace { before_mlp, after_mlp };

/// Products of the stream with the vectors of a basis, [tokens, classes], for every token of the
/// batch, after the attention of a layer or after its feed forward.
struct Projection {
  std::int64_t layer = 0;
  StreamPlace place = StreamPlace::before_mlp;
  Tensor encoder, decoder;
};
std::vector<Projection> project(nn::Decoder& model, const nn::Batch& batch, const Bases& bases);

/// The deviation of one or two sets of vectors from orthogonality: |cos| of the angles between
/// different vectors. Independent random directions of width d have a root mean square of
/// 1/sqrt(d).
struct Cosines {
  double mean = 0, root_mean_square = 0, largest = 0;
};
Cosines cosines_within(const Tensor& rows);
Cosines cosines_between(const Tensor& rows, const Tensor& others);
/// Standard deviation of the rows' lengths divided by their mean.
double spread_of_lengths(const Tensor& rows);

/// The two mechanisms of a model that sorts, counted over samples of the sorting task:
///   minimum     after the first attention, the largest product of the mark ⊥ with the decoder
///   basis
///               is that of the smallest number
///   successor   after the second, the two largest products of an output number that has a greater
///               one in the input are those of itself and of the next greater number
struct Mechanisms {
  std::int64_t minimum_hits = 0, minimum_count = 0;
  std::int64_t successor_hits = 0, successor_count = 0;
};
Mechanisms sorting_mechanisms(nn::Decoder& model, const tasks::Task& task,
                              const EvaluationOptions& options);

/// Projections of one token of a sequence on both bases, for every layer and place, as HTML. The
/// `named` largest products are labelled with their tokens.
std::string projection_pictures(nn::Decoder& model, const tasks::Task& task,
                                std::span<const std::int32_t> tokens, std::int64_t position,
                                std::int64_t named = 3);
/// The cosines and lengths of the bases, as HTML.
std::string bases_table(const Bases& bases);

}  // namespace longhand::app
