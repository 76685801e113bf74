#include "tasks/copying.h"

#include <algorithm>

#include "core/error.h"
#include "core/quote.h"
#include "tasks/range.h"

namespace longhand::tasks {
namespace {

constexpr std::int64_t most_places = 1 << 20, most_symbols = 1 << 16;

WordVocabulary symbols_and_marks(std::int64_t symbols) {
  std::vector<std::string> texts;
  for (std::int64_t symbol = 0; symbol < symbols; ++symbol) texts.push_back(std::to_string(symbol));
  texts.emplace_back(".");
  texts.emplace_back("⊥");
  return WordVocabulary(std::move(texts), " ");
}

class Copying final : public Task {
 public:
  using Tokens = std::vector<std::int32_t>;

  explicit Copying(const OptionValues& options)
      : places_(Range::of(options, "noise", 1, most_places)),
        data_(options.integer("data", 0, most_places)),
        symbols_(options.integer("symbols", 2, most_symbols)),
        noise_(static_cast<std::int32_t>(symbols_)),
        mark_(noise_ + 1),
        vocabulary_(symbols_and_marks(symbols_)) {
    LONGHAND_CHECK(data_ <= places_.least, "task copying: option data: expected at most ",
                   places_.least, " (the minimum of option \"noise\"), got ", data_);
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  std::int64_t longest() const override {
    return places_.most + 1 + (data_ == 0 ? places_.most : data_);
  }
  std::string_view main_metric() const override { return "sequences"; }
  std::int64_t coupled_positions() const override {
    return (data_ == 0 ? places_.most : data_) + 1;
  }

  /// Couplings are equal for tokens that belong together. A symbol and its copy have the symbol's
  /// index, counted from 1. Noise has the coupling of the preceding symbol. The mark ⊥ has coupling
  /// 0.
  Tokens couplings(std::span<const std::int32_t> tokens) const override {
    Tokens all;
    std::int32_t id = 0;
    for (const std::int32_t token : tokens) {
      if (token == mark_) {
        id = 0;
      } else if (token != noise_) {
        ++id;
      }
      all.push_back(id);
    }
    return all;
  }

  Sample sample(Rng& rng, int) const override {
    const std::int64_t places = places_.draw(rng);
    Sample sample;
    Tokens data;
    std::int64_t missing = data_ == 0 ? places : data_;
    for (std::int64_t left = places; left > 0; --left) {
      // `missing` symbols remain to be put into `left` places. If the next place gets a symbol with
      // probability missing / left, all selections of places are equally likely.
      const bool holds_one = rng.below(static_cast<std::uint32_t>(left)) < missing;
      if (holds_one) {
        const std::uint32_t symbol = rng.below(static_cast<std::uint32_t>(symbols_));
        data.push_back(static_cast<std::int32_t>(symbol));
        --missing;
      }
      sample.tokens.push_back(holds_one ? data.back() : noise_);
    }
    sample.tokens.push_back(mark_);
    sample.tokens.insert(sample.tokens.end(), data.begin(), data.end());
    sample.targets.assign(sample.tokens.size(), Sample::not_counted);
    for (std::size_t i = 0; i < data.size(); ++i) {
      const std::size_t output = static_cast<std::size_t>(places) + i;
      sample.asked.push_back(static_cast<std::int32_t>(output));
      sample.targets[output] = data[i];
    }
    return sample;
  }

  void score(const Sample& sample, std::span<const std::int32_t> said,
             Tally& tally) const override {
    add_answer(sample, said, tally);
  }

  /// To predict a symbol of the answer, a model must attend to the symbol of which it is a copy,
  /// before the mark ⊥.
  std::vector<ReferenceRow> reference(const Sample& sample) const override {
    std::vector<ReferenceRow> rows;
    std::int32_t place = 0;
    for (const std::int32_t output : sample.asked) {
      while (sample.tokens[static_cast<std::size_t>(place)] == noise_) ++place;
      rows.push_back({output, {place}});
      ++place;
    }
    return rows;
  }

  /// The answer as text, which starts with a space.
  std::string answer(std::string_view prompt, int) const override {
    Tokens data;
    const std::string wrong = read_prompt(prompt, data);
    LONGHAND_CHECK(wrong.empty(), "copying: ", wrong);
    return ' ' + vocabulary_.decode(data);
  }

  std::optional<std::string> check(std::string_view prompt, std::string_view answer,
                                   int) const override {
    Tokens data, said;
    std::string wrong = read_prompt(prompt, data);
    if (wrong.empty()) wrong = vocabulary_.encode(answer, said);
    if (!wrong.empty()) return wrong;
    for (std::size_t i = 0; i < std::min(said.size(), data.size()); ++i) {
      if (said[i] == data[i]) continue;
      return text("symbol ", i + 1, ": expected ", data[i], ", got ", vocabulary_.text(said[i]));
    }
    if (said.size() == data.size()) return std::nullopt;
    return text("expected ", data.size(), " symbols, got ", said.size());
  }

 private:
  /// Parses a prompt of any length and appends its symbols to `data`. Returns a description of what
  /// is wrong, or an empty text if nothing is wrong.
  std::string read_prompt(std::string_view text, Tokens& data) const {
    std::string wrong = vocabulary_.encode(text, data);
    if (!wrong.empty()) return wrong;
    const auto marks = std::ranges::count(data, mark_);
    if (marks != 1 || data.back() != mark_) {
      return longhand::text("expected symbols, noise and one ⊥ at the end, got ", quote(text));
    }
    data.pop_back();
    const auto noise = std::erase(data, noise_);
    if (data_ == 0 && noise > 0) return "expected only symbols before ⊥, got noise";
    if (data.empty() || (data_ > 0 && std::ssize(data) != data_)) {
      return longhand::text("expected ", data_ == 0 ? "some" : std::to_string(data_),
                            " symbols before ⊥, got ", data.size());
    }
    return {};
  }

  Range places_;
  std::int64_t data_, symbols_;
  std::int32_t noise_, mark_;  // tokens "." and "⊥", which follow the symbols in the vocabulary
  WordVocabulary vocabulary_;
};

/// A test distribution: prompts have `factor` times as many places as the longest prompts in
/// training. The option `data`, the number of symbols, is unchanged.
Distribution more_places(std::int64_t factor) {
  return {text(factor, "x"), [factor](OptionValues& values) {
            const Range places = Range::of(values, "noise", 1, most_places / factor);
            values.set("noise", text(factor * places.most));
          }};
}

}  // namespace

TaskKind copying() {
  return {
      .name = "copying",
      .summary = "repeat symbols that are scattered in noise",
      .options =
          {{"data", "16", "number of symbols to copy; 0: a symbol at every place (plain copying)"},
           {"symbols", "16", "number of different symbols"},
           {"noise", "64-256",
            "number of places (symbols and noise) before the mark, or a range such as 64-256"}},
      .distributions = {{"train", [](OptionValues&) {}}, more_places(4), more_places(16)},
      .make_with = [](const OptionValues& values) { return std::make_unique<Copying>(values); }};
}

}  // namespace longhand::tasks
