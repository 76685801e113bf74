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

Ends ends_of(const tasks::Task& task, const std::vector<std::int32_t>& end) {
  Ends ends{.tokens = task.ends()};
  if (end.size() == 1) ends.tokens.push_back(end[0]);
  if (end.size() > 1) ends.texts.push_back(task.vocabulary().decode(end));
  return ends;
}

bool Continuation::add(const nn::Choice& choice) {
  choices_.push_back(choice);
  if (std::ranges::count(ends_.tokens, choice.token) > 0) return true;
  if (!text_.empty()) text_ += vocabulary_.separator();
  text_ += vocabulary_.text(choice.token);
  std::size_t place = std::string::npos;
  for (const std::string& end : ends_.texts) place = std::min(place, text_.find(end));
  if (place == std::string::npos) return false;
  text_.resize(place);
  return true;
}

std::string_view Continuation::fresh(bool is_last) {
  const std::string_view all(text_);
  std::size_t until = all.size();
  if (!is_last) {
    while (until > shown_ && until + 4 > all.size() && !is_whole(until)) --until;
    // Number of bytes at the end of the text that may be the beginning of a text that ends the
    // generation (ends_.texts).
    std::size_t held = 0;
    for (const std::string& end : ends_.texts) {
      for (std::size_t n = std::min(end.size(), until - shown_); n > held; --n) {
        if (all.substr(0, until).ends_with(end.substr(0, n))) held = n;
      }
    }
    until -= held;
  }
  const std::string_view piece = all.substr(shown_, until - shown_);
  shown_ = until;
  return piece;
}

bool Continuation::is_whole(std::size_t until) const {
  return find_broken_utf8(std::string_view(text_).substr(shown_, until - shown_)) ==
         std::string_view::npos;
}

std::vector<CliFlag> sampling_options() {
  return {{"temperature", "X",
           "sampling temperature; 0: always the most probable token; 1: the model's probabilities; "
           "default: 0.8 if the task of the run is \"text\", otherwise 0"},
          {"top-k", "N", "sample from the N most probable tokens; 0: from all tokens", "0"},
          {"top-p", "X",
           "sample from the smallest set of most probable tokens with a total probability of at "
           "least X",
           "1"},
          {"min-p", "X",
           "exclude tokens with less than X times the probability of the most probable token", "0"},
          {"repetition-penalty", "X",
           "penalty on the logits of tokens that already occurred; 1: no penalty", "1"},
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

tasks::ConversationFormat conversation_format(const LoadedRun& loaded, const Arguments& arguments) {
  LONGHAND_CHECK(loaded.config.kind().name == "text",
                 "chat: expected a run of the task \"text\", got a run of the task ",
                 loaded.config.kind().name);
  tasks::OptionValues values = loaded.config.task_values();
  if (arguments.given("template")) values.set("template", arguments.word("template"));
  const auto make = [&] { return tasks::TextSettings(values).format(loaded.task->vocabulary()); };
  return arguments.given("template") ? as_usage("template", make) : make();
}

CliFlag template_option() {
  return {"template", "NAME",
          "chat template: none, auto, " + nn::ChatTemplate::names() +
              "; auto: the template of the tokenizer; default: the run's"};
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
