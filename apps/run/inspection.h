#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/run/evaluation.h"

namespace longhand::app {

/// A token as a label in pictures: white space is made visible, and invisible characters are
/// escaped.
std::string token_label(const tasks::Vocabulary& vocabulary, std::int32_t token);

/// Activations of one pass whose names contain this text, by name.
std::map<std::string, Tensor> watched(nn::Decoder& model, const nn::Input& input,
                                      std::string_view part);

/// The share of cases in which a FAL head reads the token that the task's answer needs. Heads are
/// numbered over all kinds, in the order of the layer's list.
struct FalShare {
  std::int64_t layer = 0, head = 0;
  std::int64_t hits = 0, count = 0;
};

/// For every FAL head, over all asked outputs of the samples: the share whose value read, v_(m+1),
/// is at the last reference column. In Flip-Flop this means that m is the last write or read before
/// this one. Nothing is counted for a task without reference attention.
std::vector<FalShare> fal_shares(nn::Decoder& model, const tasks::Task& task,
                                 const EvaluationOptions& options);

/// The weights or selections of one head in one sequence.
struct HeadView {
  std::int64_t layer = 0, head = 0;
  std::vector<double> weights = {};         // P, tokens * tokens; may be empty
  std::vector<std::int64_t> selected = {};  // m of each token, -1 for none; may be empty
};
std::vector<HeadView> look_inside(nn::Decoder& model, const nn::Input& sequence);

/// A sample's tokens as HTML, as far as the views cover them: the selections of every FAL head with
/// the asked tokens emphasized, and the attention of every other head as a map.
std::string selection_pictures(const tasks::Task& task, const tasks::Sample& sample,
                               const std::vector<HeadView>& views);
std::string attention_maps(const tasks::Task& task, const tasks::Sample& sample,
                           const std::vector<HeadView>& views);

/// Labels of tokens in such pictures.
std::vector<std::string> labels(const tasks::Task& task, std::span<const std::int32_t> tokens);
/// Shows pictures side by side if the page is wide enough.
std::string side_by_side(const std::string& figures);
std::string shares_table(const std::vector<FalShare>& shares);

}  // namespace longhand::app
