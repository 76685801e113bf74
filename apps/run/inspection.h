#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/run/evaluation.h"

namespace longhand::app {

/// The label of a token in pictures. White space is made visible and invisible characters are
/// escaped.
std::string token_label(const tasks::Vocabulary& vocabulary, std::int32_t token);

/// The activations of one forward pass whose names contain `part`. The key is the name.
std::map<std::string, Tensor> watched(nn::Decoder& model, const nn::Input& input,
                                      std::string_view part);

/// Counts how often a FAL head, which selects one earlier token for each token, selects the one
/// that the task's answer requires: `hits` of `count` times. `head` is the index of the head among
/// all heads of the layer, in the order of the layer's list.
struct FalShare {
  std::int64_t layer = 0, head = 0;
  std::int64_t hits = 0, count = 0;
};

/// Compares every FAL head with the task's reference attention. For each token, a FAL head selects
/// an earlier token m and reads the value of token m + 1. If token m + 1 is the last reference
/// token, this is a hit. In Flip-Flop, the last reference token is the bit of the preceding write
/// or read. Tokens without a reference are not counted.
std::vector<FalShare> fal_shares(nn::Decoder& model, const tasks::Task& task,
                                 const EvaluationOptions& options);

/// The attention weights of one head, or the tokens that it selects, in one sequence.
struct HeadView {
  std::int64_t layer = 0, head = 0;
  std::vector<double> weights = {};  // attention weights, [tokens, tokens]; may be empty
  /// The index of the token that a FAL head selected for each token; -1: none. Empty for other
  /// heads.
  std::vector<std::int64_t> selected = {};
};
std::vector<HeadView> look_inside(nn::Decoder& model, const nn::Input& sequence);

/// Pictures, as HTML, of what heads do in a sample. If `views` were made from only the first tokens
/// of the sample, the pictures show only these tokens. selection_pictures() shows which token a FAL
/// head selected for each token, and emphasizes scored tokens. attention_maps() shows the attention
/// weights of heads.
std::string selection_pictures(const tasks::Task& task, const tasks::Sample& sample,
                               const std::vector<HeadView>& views);
std::string attention_maps(const tasks::Task& task, const tasks::Sample& sample,
                           const std::vector<HeadView>& views);

/// The labels of tokens in pictures; token_label() makes each.
std::vector<std::string> labels(const tasks::Task& task, std::span<const std::int32_t> tokens);
/// Shows pictures side by side if the page is wide enough.
std::string side_by_side(const std::string& figures);
std::string shares_table(const std::vector<FalShare>& shares);

}  // namespace longhand::app
