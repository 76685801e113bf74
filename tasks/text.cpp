#include "tasks/text.h"

#include <algorithm>
#include <mutex>

#include "core/error.h"
#include "core/quote.h"
#include "core/utf8.h"
#include "tasks/text_settings.h"
#include "tasks/text_source.h"
#include "tasks/text_vocabulary.h"

namespace longhand::tasks {
namespace {

class Text final : public Task {
 public:
  explicit Text(const OptionValues& options) : settings_(options) {
    const std::int64_t size = options.integer("vocabulary", 0, 1 << 24);
    if (settings_.of_bytes()) {
      LONGHAND_CHECK(
          size == 0 || size == 256,
          "task text: option vocabulary: expected 0 or 256, because the tokens are bytes, got ",
          size);
      vocabulary_ = std::make_unique<ByteVocabulary>();
    } else {
      vocabulary_ =
          std::make_unique<TokenizerVocabulary>(shared_tokenizer(settings_.tokenizer), size);
      LONGHAND_CHECK(find_broken_utf8(settings_.separator) == std::string::npos,
                     "task text: option separator: expected UTF-8, got ",
                     quote(settings_.separator));
    }
  }

  const Vocabulary& vocabulary() const override { return *vocabulary_; }
  std::int64_t longest() const override {
    // `begins` is true if the tokens that the tokenizer adds before a text must be added to
    // settings_.length. If the text is cut into windows, settings_.length does not include these
    // tokens. If the text consists of records, it includes them.
    const bool begins = !settings_.of_records;
    return settings_.length + 1 + (begins ? std::ssize(vocabulary_->beginning()) : 0);
  }
  std::string_view main_metric() const override { return "bits_per_byte"; }
  std::vector<std::int32_t> ends() const override { return settings_.ends; }

  std::uint64_t count() const override { return source().count(); }
  Sample sample_at(std::uint64_t number, double shift) const override {
    return source().sample_at(number, shift);
  }
  Sample sample(Rng& rng, int) const override {
    const double place = rng.uniform() * static_cast<double>(count());
    return sample_at(std::min(count() - 1, static_cast<std::uint64_t>(place)), rng.uniform());
  }

  /// If the text consists of records, the two texts are the prompt and the answer of a record. All
  /// other samples use Task::as_text().
  std::pair<std::string, std::string> as_text(const Sample& sample) const override {
    const auto first = std::ranges::find_if(sample.targets, [](auto t) { return t >= 0; });
    const auto given = static_cast<std::size_t>(first - sample.targets.begin()) + 1;
    if (!settings_.of_records || given >= sample.tokens.size()) return Task::as_text(sample);
    const auto tokens = std::span(sample.tokens);
    return {vocabulary_->decode(tokens.first(given)), vocabulary_->decode(tokens.subspan(given))};
  }

  /// Scores the answers of records. If the text is plain, no token is scored, because a model of
  /// plain text is judged by its loss.
  void score(const Sample& sample, std::span<const std::int32_t> said,
             Tally& tally) const override {
    if (sample.asked.empty()) {
      count_right(sample, said);
    } else {
      add_answer(sample, said, tally);
    }
  }

  std::int64_t target_bytes(const Sample& sample) const override {
    std::int64_t bytes = 0;
    for (const std::int32_t token : sample.targets) {
      if (token >= 0) bytes += std::ssize(vocabulary_->text(token));
    }
    return bytes;
  }

  std::vector<ReferenceRow> reference(const Sample&) const override { return {}; }

  std::string answer(std::string_view, int) const override {
    fail(
        "text: expected a task with right answers, got the task \"text\", which has no right "
        "answers");
  }

  /// Every continuation that consists of tokens of the vocabulary is a right answer.
  std::optional<std::string> check(std::string_view prompt, std::string_view answer,
                                   int) const override {
    std::vector<std::int32_t> tokens;
    std::string wrong = vocabulary_->encode(std::string(prompt) + std::string(answer), tokens);
    if (wrong.empty()) return std::nullopt;
    return wrong;
  }

 private:
  /// The text is opened only when the first sample is needed, because a trained model can be used
  /// without the text.
  const TextSource& source() const {
    // std::call_once is not used, because it calls its argument through a C function of libc. In a
    // program with a static libgcc, an exception that leaves the C function ends the program.
    const std::lock_guard lock(opening_);
    if (!source_) {
      const auto make = settings_.of_records ? records_of : windows_of;
      source_ = make(settings_, *vocabulary_);
    }
    return *source_;
  }

  TextSettings settings_;
  std::unique_ptr<const Vocabulary> vocabulary_;
  mutable std::mutex opening_;
  mutable std::unique_ptr<const TextSource> source_;
};

/// The test distribution `validation`. Empty if nothing is held out and there is no validation
/// file.
std::vector<Distribution> validation_if_any(const OptionValues& values) {
  const TextSettings settings(values);
  if (settings.held_out == 0 && !settings.another_file()) return {};
  return {{"validation", [](OptionValues& v) { v.set("part", "validation"); }}};
}

}  // namespace

TaskKind own_text() {
  return {
      .name = "text",
      .summary = "language modelling on your own text: predict every next token",
      .options =
          {{"text", "", "training file", "text"},
           {"validation", "", "validation file; default: the held-out part of the training file",
            "text-validation"},
           {"held_out", "0.05",
            "share of the text, at its end, that is held out for validation; 0: none"},
           {"tokenizer", "bytes",
            "tokenizer: bytes, a tokenizer.json file, or a folder that contains one", "tokenizer"},
           {"length", "256", "maximum number of predicted tokens per sample"},
           {"separator", "", "text that separates two documents, such as \\n\\n\\n"},
           {"form", "auto",
            "format of the file: text, jsonl (prompts and answers) or auto (by the file's "
            "extension)"},
           {"template", "none",
            "chat template: none, auto (the tokenizer's own), or one of " +
                nn::ChatTemplate::names()},
           {"date", "26 Jul 2024", "date that the llama3.2 template inserts"},
           {"instruction", "", "text that precedes every prompt"},
           {"examples", "0",
            "number of records at the beginning of the file that precede every prompt as examples"},
           {"cut", "0", "1: truncate records that are too long; 0: report an error"},
           {"vocabulary", "0", "vocabulary size of the model; 0: the tokenizer's vocabulary size"},
           {"lossy", "0", "1: replace invalid UTF-8 by U+FFFD; 0: report an error"},
           {"end", "none",
            "ids of the tokens that end generated text, separated by commas, or none"},
           {"part", "train", "part from which samples are drawn: train or validation"}},
      .distributions = {{"train", [](OptionValues&) {}, false}},
      .make_with = [](const OptionValues& values) { return std::make_unique<Text>(values); },
      .files = [](const OptionValues& values) { return TextSettings(values).files(); },
      .further = validation_if_any};
}

}  // namespace longhand::tasks
