#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/run/evaluation.h"

namespace longhand::app {

/// A token as a picture names it: white space is made visible, and what cannot be seen is escaped.
std::string token_label(const tasks::Vocabulary& vocabulary, std::int32_t token);

/// Activations of one pass whose names hold this, by name.
std::map<std::string, Tensor> watched(nn::Decoder& model, const nn::Input& input,
                                      std::string_view part);

/// How often a FAL head reads what the task's answer needs. Heads are counted over all kinds, in
/// the order of the layer's list.
struct FalShare {
  std::int64_t layer = 0, head = 0;
  std::int64_t hits = 0, count = 0;
};

/// Over all asked outputs of the samples, for every FAL head: the share whose value read, v_(m+1),
/// stands at the last of the reference columns. In Flip-Flop that means that m is the last write or
/// read before this one. A task without reference attention counts nothing.
std::vector<FalShare> fal_shares(nn::Decoder& model, const tasks::Task& task,
                                 const EvaluationOptions& options);

/// What one head does with one sequence.
struct HeadView {
  std::int64_t layer = 0, head = 0;
  std::vector<double> weights = {};         // P, tokens * tokens; or empty
  std::vector<std::int64_t> selected = {};  // m of each token, -1 where there is none; or empty
};
std::vector<HeadView> look_inside(nn::Decoder& model, const nn::Input& sequence);

/// A sample's tokens as HTML, those that the views know: the selections of every FAL head with the
/// asked tokens strong, and the attention of every other head as a map.
std::string selection_pictures(const tasks::Task& task, const tasks::Sample& sample,
                               const std::vector<HeadView>& views);
std::string attention_maps(const tasks::Task& task, const tasks::Sample& sample,
                           const std::vector<HeadView>& views);

/// The labels of tokens in such pictures.
std::vector<std::string> labels(const tasks::Task& task, std::span<const std::int32_t> tokens);
/// Pictures side by side where the page has room.
std::string side_by_side(const std::string& figures);
std::string shares_table(const std::vector<FalShare>& shares);

}  // namespace longhand::app
