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

/// The activations of one forward pass whose names contain `part`; key: the name.
std::map<std::string, Tensor> watched(nn::Decoder& model, const nn::Input& input,
                                      std::string_view part);

/// How often a FAL head selects the token that the task's answer requires. `head` counts all heads
/// of the layer, of every kind, in the order of the layer's list.
struct FalShare {
  std::int64_t layer = 0, head = 0;
  std::int64_t hits = 0, count = 0;
};

/// For every FAL head, over all scored outputs of the samples: how often the selected value v_(m+1)
/// is the last reference column. In Flip-Flop, m is then the last write or read before the output's
/// token. Without reference attention, all counts are 0.
std::vector<FalShare> fal_shares(nn::Decoder& model, const tasks::Task& task,
                                 const EvaluationOptions& options);

/// The weights or the selected keys of one head in one sequence.
struct HeadView {
  std::int64_t layer = 0, head = 0;
  std::vector<double> weights = {};  // P, [tokens, tokens]; may be empty
  /// Selected index m of each token, -1 for none; may be empty.
  std::vector<std::int64_t> selected = {};
};
std::vector<HeadView> look_inside(nn::Decoder& model, const nn::Input& sequence);

/// HTML of a sample's tokens, limited to the tokens that the views contain. For a FAL head it shows
/// which token each token selected, with scored tokens emphasized; for any other head an attention
/// map.
std::string selection_pictures(const tasks::Task& task, const tasks::Sample& sample,
                               const std::vector<HeadView>& views);
std::string attention_maps(const tasks::Task& task, const tasks::Sample& sample,
                           const std::vector<HeadView>& views);

/// The labels of tokens in such pictures.
std::vector<std::string> labels(const tasks::Task& task, std::span<const std::int32_t> tokens);
/// Shows pictures side by side if the page is wide enough.
std::string side_by_side(const std::string& figures);
std::string shares_table(const std::vector<FalShare>& shares);

}  // namespace longhand::app
