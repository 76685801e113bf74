#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/command.h"
#include "apps/run/config.h"
#include "apps/run/run_folder.h"
#include "nn/models/decode.h"
#include "tasks/conversation.h"
#include "tasks/task.h"
#include "tasks/vocabulary.h"

namespace longhand::app {

/// The tokens and texts that end generated text. They are not part of the text.
struct Ends {
  std::vector<std::int32_t> tokens = {};
  std::vector<std::string> texts = {};
};
/// Returns what ends a generated text: the end tokens of the task and, in addition, the token
/// sequence `end`. If `end` is a single token, generation ends when this token is generated. If it
/// is several tokens, generation ends when the generated text contains the text of `end`.
Ends ends_of(const tasks::Task& task, const std::vector<std::int32_t>& end);

/// A prompt's continuation that is generated token by token. It contains the text so far, and the
/// number of bytes that were already shown.
class Continuation {
 public:
  Continuation(const tasks::Vocabulary& vocabulary, std::vector<std::int32_t> prompt, Ends ends)
      : vocabulary_(vocabulary), prompt_(std::move(prompt)), ends_(std::move(ends)) {}

  const std::vector<std::int32_t>& prompt() const { return prompt_; }
  const std::string& text() const { return text_; }
  const std::vector<nn::Choice>& choices() const { return choices_; }

  /// Adds a token. Returns true if the continuation ends: the token is an end token, or the text
  /// contains an end text. The text is then cut before its first end text.
  bool add(const nn::Choice& choice);
  /// Returns the part of the text that can be shown and was not shown before. It ends with a whole
  /// character. If the last characters may be the beginning of an end text, they are held back. If
  /// `is_last`, the whole rest of the text is returned.
  std::string_view fresh(bool is_last);

 private:
  bool is_whole(std::size_t until) const;

  const tasks::Vocabulary& vocabulary_;
  std::vector<std::int32_t> prompt_;
  Ends ends_;
  std::string text_;
  std::vector<nn::Choice> choices_;
  std::size_t shown_ = 0;  // number of bytes of text_ that were already shown
};

/// The callback nn::GenerateOptions::positions for a model that reads position ids as input. Empty
/// for other models. Sequence i uses the random seed `seed` + i. The task must live longer than the
/// callback.
decltype(nn::GenerateOptions::positions) given_positions(const nn::Decoder& model,
                                                         const tasks::Task& task,
                                                         std::uint64_t seed);

/// The tokens at which generated text ends: the end of a document for a plain text, or the end of
/// an answer for records and chat templates. Empty for tasks other than `text`, and for texts
/// without such tokens.
std::vector<std::int32_t> end_of_text(const Config& config, const tasks::Vocabulary& vocabulary);

/// The format of conversations with a run's model, from the flag --template or else from the run.
/// Throws an Error if the run's task is not `text`.
tasks::ConversationFormat conversation_format(const LoadedRun& loaded, const Arguments& arguments);
/// The flag --template.
CliFlag template_option();

/// The flags that control sampling, including --seed.
std::vector<CliFlag> sampling_options();
nn::Sampling sampling_from(const Arguments& arguments);
/// Default temperature for the task `text`, because the most probable continuation of a text
/// repeats itself. For tasks with right answers, the default is 0.
constexpr double text_temperature = 0.8;

}  // namespace longhand::app
