#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/run/evaluation.h"

/// Compares the residual stream with the vectors that represent tokens at the input and output of a
/// model (Awasthi and Gupta 2023, section 4).
namespace longhand::app {

/// The vectors that represent the tokens at the input and at the output of a model, [tokens, width]
/// each.
struct Bases {
  Tensor encoder;  // the rows of the embedding
  Tensor decoder;  // the rows of the output layer's weight, one per class
};
Bases bases_of(const nn::Decoder& model, std::int64_t head = 0);

/// The place within a block at which the residual stream is measured.
enum class StreamPlace { before_mlp, after_mlp };

/// Products of the residual stream with one vector for each class, [tokens, classes], for every
/// token of a batch. The stream is measured after a layer's attention or after its feed-forward
/// layer.
struct Projection {
  std::int64_t layer = 0;
  StreamPlace place = StreamPlace::before_mlp;
  Tensor encoder, decoder;
};
std::vector<Projection> project(nn::Decoder& model, const nn::Batch& batch, const Bases& bases);

/// How far the vectors of one or two sets are from orthogonal: statistics of |cos| of the angles
/// between different vectors. For independent random directions of width d, the root mean square is
/// 1/sqrt(d).
struct Cosines {
  double mean = 0, root_mean_square = 0, largest = 0;
};
Cosines cosines_within(const Tensor& rows);
Cosines cosines_between(const Tensor& rows, const Tensor& others);
/// The standard deviation of the rows' lengths, divided by the mean length.
double spread_of_lengths(const Tensor& rows);

/// Counts how often two mechanisms are found in a model that sorts numbers. In each sample, the
/// mark ⊥ separates the input from the output. The products are those of a token's residual stream
/// with the rows of the output layer's weight, one row per token:
///   minimum     after the first attention, the largest product at the mark ⊥ belongs to the
///               smallest number of the input
///   successor   after the second attention, the two largest products at an output number belong
///               to this number and to the next greater number of the input; output numbers
///               without a greater number are not counted
struct Mechanisms {
  std::int64_t minimum_hits = 0, minimum_count = 0;
  std::int64_t successor_hits = 0, successor_count = 0;
};
Mechanisms sorting_mechanisms(nn::Decoder& model, const tasks::Task& task,
                              const EvaluationOptions& options);

/// Charts, as HTML, of the products of one token's stream with the vectors of the embedding and of
/// the output layer, at every layer and place. The `named` largest products are labelled with their
/// tokens.
std::string projection_pictures(nn::Decoder& model, const tasks::Task& task,
                                std::span<const std::int32_t> tokens, std::int64_t position,
                                std::int64_t named = 3);
/// A table, as HTML, of the angles between the vectors of the bases, and of the vectors' lengths.
std::string bases_table(const Bases& bases);

}  // namespace longhand::app
