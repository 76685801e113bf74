#include "tasks/flip_flop.h"

#include "core/error.h"
#include "core/quote.h"
#include "tasks/range.h"

namespace longhand::tasks {
namespace {

// The tokens w, r, i, 0 and 1, in the order of the vocabulary.
enum Token : std::int32_t { write, read, ignore, zero, one };

/// Executes the instructions of a sample. Each write sets `stored` to its bit, as the character '0'
/// or '1'. Before the call, `stored` must be the null character, which means that no bit was
/// written. Returns a description of what is wrong, or an empty text if nothing is wrong.
std::string run_register(std::string_view instructions, char& stored) {
  for (std::size_t at = 0; at < instructions.size(); at += 2) {
    const std::string where = text("instruction ", at / 2 + 1, ": ");
    const std::string_view letter = instructions.substr(at, 1);
    const std::string_view bit = instructions.substr(at + 1, 1);
    if (letter != "w" && letter != "r" && letter != "i") {
      return where + "expected \"w\", \"r\" or \"i\", got " + quote(letter);
    }
    if (bit != "0" && bit != "1") return where + "expected the bit 0 or 1, got " + quote(bit);
    if (letter == "w") stored = bit[0];
    if (letter == "r" && stored == 0)
      return where + "expected a write (w) before the first read (r)";
    if (letter == "r" && stored != bit[0])
      return where + "expected r" + stored + ", got r" + bit[0];
  }
  return {};
}

constexpr std::int64_t most_instructions = 1 << 20;

/// The letter of an instruction is selected by a uniform number u: an ignore if u < ignores,
/// otherwise a read if u < reads, otherwise a write.
struct Shares {
  double ignores, reads;
};

/// For samples whose letters drift (FlipFlop::drift): the possible numbers of instructions in the
/// first and in the last part of a sample.
constexpr Range first_part{1, 16}, last_part{16, 64};
constexpr Shares first_shares{0.5, 0.5}, middle_shares{0.995, 0.9975}, last_shares{0.1, 1};

class FlipFlopTask final : public Task {
 public:
  explicit FlipFlopTask(const FlipFlop& options)
      : instructions_(options.instructions),
        ignore_(options.ignore),
        every_token_(options.every_token),
        drift_(options.drift),
        vocabulary_(WordVocabulary::of_characters("wri01")) {
    LONGHAND_CHECK(instructions_ >= 1 && instructions_ <= most_instructions,
                   "flip-flop: expected 1 to ", most_instructions, " instructions, got ",
                   instructions_);
    LONGHAND_CHECK(ignore_ >= 0 && ignore_ <= 1,
                   "flip-flop: ignore: expected a number from 0 to 1, got ", ignore_);
    const std::int64_t ends = first_part.most + last_part.most;
    LONGHAND_CHECK(!drift_ || instructions_ >= ends, "flip-flop: expected at least ", ends,
                   " instructions, because option \"letters\" is \"drift\", got ", instructions_);
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  std::int64_t longest() const override { return 2 * instructions_; }
  std::string_view main_metric() const override { return "sequences"; }

  Sample sample(Rng& rng, int) const override {
    Sample sample;
    std::int32_t bit = zero;
    const std::int64_t first = drift_ ? first_part.draw(rng) : 0;
    const std::int64_t last = drift_ ? last_part.draw(rng) : 0;
    for (std::int64_t k = 0; k < instructions_; ++k) {
      const Shares shares = !drift_                    ? Shares{ignore_, (1 + ignore_) / 2}
                            : k < first                ? first_shares
                            : k < instructions_ - last ? middle_shares
                                                       : last_shares;
      const double u = rng.uniform();
      const Token letter = k == 0               ? write
                           : u < shares.ignores ? ignore
                           : u < shares.reads   ? read
                                                : write;
      const std::int32_t drawn = zero + static_cast<std::int32_t>(rng.below(2));
      if (letter == write) bit = drawn;
      if (letter == read) sample.asked.push_back(static_cast<std::int32_t>(2 * k));
      sample.tokens.push_back(letter);
      sample.tokens.push_back(letter == ignore ? drawn : bit);
    }
    sample.targets.assign(sample.tokens.size(), Sample::not_counted);
    if (every_token_) {
      std::copy(sample.tokens.begin() + 1, sample.tokens.end(), sample.targets.begin());
    }
    for (const std::int32_t at : sample.asked) {
      sample.targets[static_cast<std::size_t>(at)] =
          sample.tokens[static_cast<std::size_t>(at) + 1];
    }
    return sample;
  }

  /// `sequences`: share of samples in which all reads are right. Samples without reads are not
  /// counted.
  void score(const Sample& sample, std::span<const std::int32_t> said,
             Tally& tally) const override {
    const std::int64_t right = count_right(sample, said);
    const auto reads = static_cast<std::int64_t>(said.size());
    tally.add_share("sequences", reads > 0 && right == reads, reads > 0);
    tally.add_share("reads", right, reads);
  }

  /// To predict the bit of a read, a model must attend to the previous write or read, both to its
  /// letter and to its bit.
  std::vector<ReferenceRow> reference(const Sample& sample) const override {
    std::vector<ReferenceRow> rows;
    std::int32_t last = 0;
    for (std::int32_t at = 0; at < static_cast<std::int32_t>(sample.tokens.size()); at += 2) {
      const std::int32_t letter = sample.tokens[static_cast<std::size_t>(at)];
      if (letter == read) rows.push_back({at, {last, last + 1}});
      if (letter != ignore) last = at;
    }
    return rows;
  }

  /// The answer starts with the bit of the last read, and the prompt is the text before this bit.
  /// In a sample without reads, the answer is empty.
  std::pair<std::string, std::string> as_text(const Sample& sample) const override {
    const auto tokens = std::span(sample.tokens);
    const std::size_t given =
        sample.asked.empty() ? tokens.size() : static_cast<std::size_t>(sample.asked.back()) + 1;
    return {vocabulary_.decode(tokens.first(given)), vocabulary_.decode(tokens.subspan(given))};
  }

  std::string answer(std::string_view prompt, int) const override {
    LONGHAND_CHECK(prompt.ends_with('r'), "flip-flop: expected a prompt that ends with \"r\", got ",
                   quote(prompt));
    char stored = 0;
    const std::string wrong = run_register(prompt.substr(0, prompt.size() - 1), stored);
    LONGHAND_CHECK(wrong.empty(), "flip-flop: ", wrong);
    LONGHAND_CHECK(stored != 0,
                   "flip-flop: expected a write (w) before the last read (r) of the prompt");
    return {stored};
  }

  std::optional<std::string> check(std::string_view prompt, std::string_view answer,
                                   int) const override {
    char stored = 0;
    std::string wrong = run_register(std::string(prompt) + std::string(answer), stored);
    return wrong.empty() ? std::nullopt : std::optional(std::move(wrong));
  }

 private:
  std::int64_t instructions_;
  double ignore_;
  bool every_token_, drift_;
  WordVocabulary vocabulary_;
};

/// A test distribution: samples have `factor` times as many instructions as in training.
Distribution longer(std::int64_t factor) {
  return {text(factor, "x"), [factor](OptionValues& values) {
            values.set("instructions", text(factor * values.integer("instructions", 1,
                                                                    most_instructions / factor)));
          }};
}

void let_drift(OptionValues& values) {
  values.set("instructions", "256");
  values.set("letters", "drift");
}

}  // namespace

std::unique_ptr<Task> FlipFlop::make() const { return std::make_unique<FlipFlopTask>(*this); }

TaskKind flip_flop() {
  return {
      .name = "flip-flop",
      .summary = "read the last written bit after any number of ignored instructions",
      .options = {{"instructions", "512", "number of instructions per sample, of two tokens each"},
                  {"ignore", "0.6", "probability p of an ignore instruction"},
                  {"loss", "reads",
                   "tokens that contribute to the loss: reads (the bits of reads) or all"},
                  {"letters", "steady",
                   "distribution of instructions: steady (the same everywhere) or drift (first "
                   "writes, then almost only ignores, then reads; p has no effect)"}},
      .distributions = {{"train", [](OptionValues&) {}},
                        {"sparse", [](OptionValues& v) { v.set("ignore", "0.98"); }},
                        longer(2),
                        longer(4),
                        // `false`: this test set does not influence the choice of the best
                        // checkpoint.
                        {"drift", let_drift, false}},
      .make_with = [](const OptionValues& values) {
        return FlipFlop{.instructions = values.integer("instructions", 1, most_instructions),
                        .ignore = values.number("ignore", 0, 1),
                        .every_token = values.choice("loss", {"reads", "all"}) == 1,
                        .drift = values.choice("letters", {"steady", "drift"}) == 1}
            .make();
      }};
}

}  // namespace longhand::tasks
