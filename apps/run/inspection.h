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

/// How often a FAL head selects the token that the task's answer requires. `head` is the index of
/// the head among all heads of the layer, in the order of the layer's list.
struct FalShare {
  std::int64_t layer = 0, head = 0;
  std::int64_t hits = 0, count = 0;
};

/// Compares every FAL head with the reference attention. A head that selects token m reads the
/// value of token m + 1. `count` is the number of rows with a reference, and `hits` the number of
/// those in which token m + 1 is the last reference column. In Flip-Flop this column is the bit of
/// the last write or read. Without reference attention, all counts are 0.
std::vector<FalShare> fal_shares(nn::Decoder& model, const tasks::Task& task,
                                 const EvaluationOptions& options);

/// The weights or the selected keys of one head in one sequence.
struct HeadView {
  std::int64_t layer = 0, head = 0;
  std::vector<double> weights = {};  // P, [tokens, tokens]; may be empty
  /// The index m that each token selected, -1 for none. May be empty.
  std::vector<std::int64_t> selected = {};
};
std::vector<HeadView> look_inside(nn::Decoder& model, const nn::Input& sequence);

/// HTML pictures of a sample. They show only the tokens that the views contain.
/// selection_pictures() shows which token each token selected in a FAL head, and emphasizes scored
/// tokens. attention_maps() shows the weights of all other heads.
std::string selection_pictures(const tasks::Task& task, const tasks::Sample& sample,
                               const std::vector<HeadView>& views);
std::string attention_maps(const tasks::Task& task, const tasks::Sample& sample,
                           const std::vector<HeadView>& views);

/// The labels of tokens in these pictures.
std::vector<std::string> labels(const tasks::Task& task, std::span<const std::int32_t> tokens);
/// Shows pictures side by side if the page is wide enough.
std::string side_by_side(const std::string& figures);
std::string shares_table(const std::vector<FalShare>& shares);

}  // namespace longhand::app
