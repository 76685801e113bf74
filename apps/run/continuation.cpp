#include "apps/run/continuation.h"

#include <algorithm>

#include "core/utf8.h"
#include "tasks/text_settings.h"

namespace longhand::app {

decltype(nn::GenerateOptions::positions) given_positions(const nn::Decoder& model,
                                                         const tasks::Task& task,
                                                         std::uint64_t seed) {
  if (!model.config().given_positions) return {};
  return [&task, seed](std::size_t i, std::span<const std::int32_t> tokens, std::int64_t room) {
    return task.positions(tokens, room, seed + i);
  };
}

void Continuation::add(const nn::Choice& choice, bool is_shown) {
  choices_.push_back(choice);
  if (!is_shown) return;
  if (!text_.empty()) text_ += vocabulary_.separator();
  text_ += vocabulary_.text(choice.token);
}

bool Continuation::cut_at(const std::string& end) {
  const std::size_t place = end.empty() ? std::string::npos : text_.find(end);
  if (place != std::string::npos) text_.resize(place);
  return place != std::string::npos;
}

std::string_view Continuation::fresh(const std::string& end, bool is_last) {
  std::size_t until = text_.size();
  if (!is_last) {
    while (until > shown_ && until + 4 > text_.size() && !is_whole(until)) --until;
    for (std::size_t n = std::min(end.size(), until - shown_); n > 0; --n) {
      if (!std::string_view(text_).substr(0, until).ends_with(end.substr(0, n))) continue;
      until -= n;
      break;
    }
  }
  const std::string_view piece = std::string_view(text_).substr(shown_, until - shown_);
  shown_ = until;
  return piece;
}

bool Continuation::is_whole(std::size_t until) const {
  return find_broken_utf8(std::string_view(text_).substr(shown_, until - shown_)) ==
         std::string_view::npos;
}

std::vector<CliFlag> sampling_options() {
  return {{"temperature", "X",
           "sampling temperature; 0: always the most probable token; 1: the model's "
           "probabilities; default: 0.8 for text, otherwise 0"},
          {"top-k", "N", "sample from the N most probable tokens; 0: from all", "0"},
          {"top-p", "X", "sample from the fewest tokens with at least this total probability", "1"},
          {"min-p", "X", "minimum probability of a token, relative to the most probable one", "0"},
          {"repetition-penalty", "X",
           "penalty on the logits of tokens that already occurred; 1: none", "1"},
          {"seed", "N", "seed of the random numbers", "1"}};
}

std::vector<std::int32_t> end_of_text(const Config& config, const tasks::Vocabulary& vocabulary) {
  if (config.kind().name != "text") return {};
  const tasks::TextSettings settings(config.task_values());
  if (settings.of_records || settings.chat_template != "none") {
    return settings.format(vocabulary).end();
  }
  return settings.end_of_document(vocabulary);
}

nn::Sampling sampling_from(const Arguments& arguments) {
  return {
      .repetition_penalty = arguments.number("repetition-penalty", 1e-3, 1e3),
      .temperature = arguments.given("temperature") ? arguments.number("temperature", 0, 1e3) : 0,
      .top_k = arguments.integer("top-k", 0, 1 << 24),
      .top_p = arguments.number("top-p", 0, 1),
      .min_p = arguments.number("min-p", 0, 1)};
}

}  // namespace longhand::app
