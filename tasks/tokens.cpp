#include "tasks/tokens.h"

#include "core/error.h"

namespace longhand::tasks {
namespace {

class Tokens final : public Task {
 public:
  explicit Tokens(const OptionValues& options)
      : length_(options.integer("length", 1, 1 << 20)),
        vocabulary_(WordVocabulary::of_numbers(options.integer("vocabulary", 1, 1 << 24))) {}

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  std::int64_t longest() const override { return length_; }
  std::string_view main_metric() const override { return "tokens"; }

  /// In training, every token after the first one is a target. No output is scored.
  Sample sample(Rng& rng, int) const override {
    Sample sample;
    for (std::int64_t i = 0; i < length_; ++i) {
      sample.tokens.push_back(
          static_cast<std::int32_t>(rng.below(static_cast<std::uint32_t>(vocabulary_.size()))));
    }
    sample.targets.assign(sample.tokens.begin() + 1, sample.tokens.end());
    sample.targets.push_back(Sample::not_counted);
    return sample;
  }

  void score(const Sample& sample, std::span<const std::int32_t> said,
             Tally& tally) const override {
    tally.add_share("tokens", count_right(sample, said), static_cast<std::int64_t>(said.size()));
  }

  std::vector<ReferenceRow> reference(const Sample&) const override { return {}; }

  std::string answer(std::string_view, int) const override {
    fail(
        "tokens: expected a task with right answers, got the task \"tokens\", which has no right "
        "answers");
  }

  std::optional<std::string> check(std::string_view prompt, std::string_view answer,
                                   int) const override {
    std::vector<std::int32_t> tokens;
    std::string wrong = vocabulary_.encode(std::string(prompt) + std::string(answer), tokens);
    if (wrong.empty()) return std::nullopt;
    return wrong;
  }

 private:
  std::int64_t length_;
  WordVocabulary vocabulary_;
};

}  // namespace

TaskKind tokens() {
  return {.name = "tokens",
          .summary = "random token ids, for imported models without a tokenizer",
          .options = {{"vocabulary", "256", "vocabulary size"},
                      {"length", "64", "number of tokens per sample"}},
          .distributions = {{"train", [](OptionValues&) {}}},
          .make_with = [](const OptionValues& values) { return std::make_unique<Tokens>(values); }};
}

}  // namespace longhand::tasks
