#include "tasks/text.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <mutex>

#include "core/error.h"
#include "core/quote.h"
#include "nn/text/token_file.h"
#include "tasks/text_vocabulary.h"

namespace longhand::tasks {
namespace {

namespace fs = std::filesystem;

/// "none", or numbers of tokens parted by commas.
std::vector<std::int32_t> read_ends(std::string_view words) {
  std::vector<std::int32_t> ends;
  for (std::string_view rest = words; rest != "none";) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::int32_t token = -1;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + comma, token);
    LONGHAND_CHECK(error == std::errc() && end == rest.data() + comma && token >= 0,
                   "task text: option end: expected none or numbers of tokens, got ", quote(words));
    ends.push_back(token);
    if (comma == rest.size()) break;
    rest.remove_prefix(comma + 1);
  }
  return ends;
}

class Text final : public Task {
 public:
  explicit Text(const OptionValues& options)
      : text_(options.text("text")),
        validation_(options.text("validation")),
        tokenizer_(options.text("tokenizer")),
        held_out_(options.number("held_out", 0, 1)),
        length_(options.integer("length", 1, 1 << 20)),
        lossy_(options.choice("lossy", {"0", "1"}) == 1),
        validates_(options.choice("part", {"train", "validation"}) == 1),
        ends_(read_ends(options.text("end"))) {
    const std::int64_t size = options.integer("vocabulary", 0, 1 << 24);
    if (!of_bytes()) {
      vocabulary_ = std::make_unique<TokenizerVocabulary>(shared_tokenizer(tokenizer_), size);
      return;
    }
    LONGHAND_CHECK(size == 0 || size == 256,
                   "task text: option vocabulary: expected 0 or 256 with ", "bytes, got ", size);
    vocabulary_ = std::make_unique<ByteVocabulary>();
  }

  const Vocabulary& vocabulary() const override { return *vocabulary_; }
  std::int64_t longest() const override { return length_ + 1; }
  std::string_view main_metric() const override { return "bits_per_byte"; }
  bool less_is_better() const override { return true; }
  std::vector<std::int32_t> ends() const override { return ends_; }

  Sample sample(Rng& rng, int) const override {
    const Part& part = this->part();
    // As many windows as there are places to begin.
    const std::uint64_t windows = part.count - static_cast<std::uint64_t>(length_);
    const auto begin = static_cast<std::uint64_t>(rng.uniform() * static_cast<double>(windows));
    Sample sample;
    sample.tokens.resize(static_cast<std::size_t>(length_) + 1);
    part.file->read(part.begin + std::min(begin, windows - 1), sample.tokens);
    LONGHAND_CHECK(std::ranges::max(sample.tokens) < vocabulary_->size(), file().string(),
                   ": expected tokens below ", vocabulary_->size(), ", got ",
                   std::ranges::max(sample.tokens));
    sample.targets.assign(sample.tokens.begin() + 1, sample.tokens.end());
    sample.targets.push_back(Sample::not_counted);
    return sample;
  }

  /// No answer is asked for: a text is judged by its loss.
  void score(const Sample& sample, std::span<const std::int32_t> said, Tally&) const override {
    count_right(sample, said);
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
    fail("text: expected a task with a right answer, got a text to go on with");
  }

  /// Whatever goes on in tokens is an answer.
  std::optional<std::string> check(std::string_view prompt, std::string_view answer,
                                   int) const override {
    std::vector<std::int32_t> tokens;
    std::string wrong = vocabulary_->encode(std::string(prompt) + std::string(answer), tokens);
    if (wrong.empty()) return std::nullopt;
    return wrong;
  }

 private:
  /// The tokens that samples come from.
  struct Part {
    std::optional<nn::TokenFile> file;
    std::uint64_t begin = 0, count = 0;
  };

  bool of_bytes() const { return tokenizer_ == "bytes"; }
  bool another_file() const { return !validation_.empty(); }
  const fs::path& file() const { return validates_ && another_file() ? validation_ : text_; }

  /// Opened when the first sample is drawn: a trained model is used without its text.
  const Part& part() const {
    std::call_once(opened_, [&] {
      LONGHAND_CHECK(!file().empty(), "task text: expected a file to learn from (--text FILE)");
      Part part;
      part.file = open(file());
      part.count = part.file->size();
      if (!another_file()) {
        const auto held_out =
            static_cast<std::uint64_t>(held_out_ * static_cast<double>(part.count));
        part.begin = validates_ ? part.count - held_out : 0;
        part.count = validates_ ? held_out : part.count - held_out;
      }
      LONGHAND_CHECK(part.count > static_cast<std::uint64_t>(length_), file().string(),
                     ": expected more than ", length_, " tokens for ",
                     validates_ ? "validation" : "training", ", got ", part.count,
                     another_file() ? "" : text_of_parts());
      part_ = std::move(part);
    });
    return part_;
  }

  std::string text_of_parts() const { return text(" (a share of ", held_out_, " is held out)"); }

  /// Tokens lie beside the text: book.txt.1a2b3c4d.tokens, the number being the tokenizer's.
  nn::TokenFile open(const fs::path& file) const {
    LONGHAND_CHECK(fs::is_regular_file(file), file.string(), ": expected a file of text");
    if (of_bytes()) return nn::TokenFile::of_bytes(file);
    const nn::TokenFile::Key key{.tokenizer = nn::tokenizer_sum(tokenizer_), .lossy = lossy_};
    char name[32];
    std::snprintf(name, sizeof name, ".%08x%s.tokens", key.tokenizer, lossy_ ? "-lossy" : "");
    const auto& words = static_cast<const TokenizerVocabulary&>(*vocabulary_);
    return nn::TokenFile::of_tokens(file, words.tokenizer(), key, fs::path(file) += name);
  }

  fs::path text_, validation_;
  std::string tokenizer_;
  double held_out_;
  std::int64_t length_;
  bool lossy_, validates_;
  std::vector<std::int32_t> ends_;
  std::unique_ptr<const Vocabulary> vocabulary_;
  mutable std::once_flag opened_;
  mutable Part part_;
};

}  // namespace

TaskKind own_text() {
  return {
      .name = "text",
      .summary = "text of one's own: every next token from those before it",
      .options = {{"text", "", "the file to learn from", "text"},
                  {"validation", "", "the file to be scored on; none: what is held out of the text",
                   "text-validation"},
                  {"held_out", "0.05", "the share at the text's end that is not learned from"},
                  {"tokenizer", "bytes", "bytes, a tokenizer.json, or a folder with one",
                   "tokenizer"},
                  {"length", "256", "tokens in a sample that are learned, after its first"},
                  {"vocabulary", "0", "the model's tokens; 0: as many as the tokenizer has"},
                  {"lossy", "0", "1: broken UTF-8 is read as U+FFFD; 0: it is an error"},
                  {"end", "none", "tokens, by number, that end what is generated"},
                  {"part", "train", "where samples come from: train or validation"}},
      .distributions = {{"train", "Train", [](OptionValues&) {}, false},
                        {"validation", "Validation",
                         [](OptionValues& values) { values.set("part", "validation"); }}},
      .make_with = [](const OptionValues& values) { return std::make_unique<Text>(values); }};
}

}  // namespace longhand::tasks
