#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "nn/text/token_file.h"
#include "tasks/text_source.h"
#include "tasks/text_vocabulary.h"

namespace longhand::tasks {
namespace {

namespace fs = std::filesystem;

/// Opens the token file, which is next to the text and has a name such as book.txt.1a2b3c4d.tokens.
/// The hexadecimal number identifies the tokenizer. If the text consists of several documents, a
/// second number identifies the separator between them.
nn::TokenFile open(const TextSettings& settings, const Vocabulary& vocabulary) {
  const fs::path& file = settings.file();
  LONGHAND_CHECK(!file.empty(), "task text: expected a file for training (--text FILE)");
  if (settings.of_bytes()) return nn::TokenFile::of_bytes(file);
  nn::TokenFile::Key key{.tokenizer = nn::tokenizer_sum(settings.tokenizer),
                         .lossy = settings.lossy,
                         .separator = settings.separator};
  if (!key.separator.empty()) {
    const std::vector<std::int32_t> end = settings.end_of_document(vocabulary);
    key.end.assign(end.begin(), end.end());
  }
  char name[48];
  int length = std::snprintf(name, sizeof name, ".%08x", key.tokenizer);
  if (!key.separator.empty()) {
    length += std::snprintf(name + length, sizeof name - static_cast<std::size_t>(length), "-%08x",
                            key.documents_sum());
  }
  std::snprintf(name + length, sizeof name - static_cast<std::size_t>(length), "%s.tokens",
                settings.lossy ? "-lossy" : "");
  const auto& words = static_cast<const TokenizerVocabulary&>(vocabulary);
  return nn::TokenFile::of_tokens(file, words.tokenizer(), key, fs::path(file) += name);
}

class Windows final : public TextSource {
 public:
  Windows(const TextSettings& settings, const Vocabulary& vocabulary)
      : name_(settings.file().string()),
        file_(open(settings, vocabulary)),
        size_(vocabulary.size()),
        length_(static_cast<std::uint64_t>(settings.length)),
        validates_(settings.validates),
        beginning_(vocabulary.beginning()) {
    for (const std::int32_t token : beginning_) check_token(token);
    TextSettings::FilePart part = settings.part_of(file_.size());
    if (!settings.another_file() && !settings.separator.empty()) {
      const std::uint64_t held_out = settings.validates ? part.begin : part.end;
      const std::uint64_t document = document_near(held_out, settings.end_of_document(vocabulary));
      (settings.validates ? part.begin : part.end) = document;
    }
    begin_ = part.begin;
    tokens_ = part.end - part.begin;
    const std::uint64_t fewest = validates_ ? 2 : length_ + 1;
    LONGHAND_CHECK(
        tokens_ >= fewest, name_, ": expected at least ", fewest, " tokens for ",
        validates_ ? "validation" : "training", ", got ", tokens_,
        settings.another_file() ? "" : text(" (a share of ", settings.held_out, " is held out)"),
        validates_ ? "" : "; a smaller --task.length needs fewer tokens");
  }

  std::uint64_t count() const override {
    if (validates_) return (tokens_ - 1 + length_ - 1) / length_;
    return std::max<std::uint64_t>(1, (tokens_ - length_) / length_);
  }

  Sample sample_at(std::uint64_t number, double shift) const override {
    LONGHAND_CHECK(number < count(), name_, ": expected a window number below ", count(), ", got ",
                   number);
    std::uint64_t begin = number * length_;
    const std::uint64_t learned = std::min(length_, tokens_ - 1 - begin);
    if (!validates_) {
      const std::uint64_t left_over = tokens_ - 1 - count() * length_;
      begin += std::min(left_over,
                        static_cast<std::uint64_t>(shift * static_cast<double>(left_over + 1)));
    }
    Sample sample;
    sample.tokens = beginning_;
    sample.tokens.resize(beginning_.size() + learned + 1);
    const auto window = std::span(sample.tokens).subspan(beginning_.size());
    file_.read(begin_ + begin, window);
    check_token(std::ranges::max(window));
    sample.targets.assign(beginning_.size(), Sample::not_counted);
    sample.targets.insert(sample.targets.end(), window.begin() + 1, window.end());
    sample.targets.push_back(Sample::not_counted);
    return sample;
  }

 private:
  void check_token(std::int32_t token) const {
    LONGHAND_CHECK(token < size_, name_, ": expected token ids below ", size_, ", got ", token);
  }

  /// The start of the first document at or after `place`. If there is none, the start of the last
  /// document before `place`.
  std::uint64_t document_near(std::uint64_t place, const std::vector<std::int32_t>& end) const {
    // Consecutive tokens of the file, read with one call. The first of them has the index
    // block_begin in the file.
    std::vector<std::int32_t> block;
    constexpr std::uint64_t most = 1 << 16;
    std::uint64_t block_begin = 0;
    const auto token_at = [&](std::uint64_t at) {
      if (block.empty() || at < block_begin || at - block_begin >= block.size()) {
        block_begin = at - at % most;
        block.resize(std::min(most, file_.size() - block_begin));
        file_.read(block_begin, block);
      }
      return block[at - block_begin];
    };
    // True if the tokens directly before index `after` are the tokens that end a document.
    const auto ends_at = [&](std::uint64_t after) {
      for (std::uint64_t i = 1; i <= end.size(); ++i) {
        if (token_at(after - i) != end[end.size() - i]) return false;
      }
      return true;
    };
    if (place == 0 || place >= file_.size()) return place;
    const std::uint64_t first = end.size();
    for (std::uint64_t at = std::max(first, place); at < file_.size(); ++at) {
      if (ends_at(at)) return at;
    }
    for (std::uint64_t at = std::min(place, file_.size()); at > first; --at) {
      if (ends_at(at - 1)) return at - 1;
    }
    fail(name_,
         ": expected documents separated by the text of option \"separator\", got a single "
         "document");
  }

  std::string name_;
  nn::TokenFile file_;
  std::int32_t size_;  // size of the vocabulary
  std::uint64_t length_;
  bool validates_;
  std::vector<std::int32_t> beginning_;
  // begin_ is the index of the first token of the part from which windows are cut, and tokens_ is
  // the number of tokens of this part.
  std::uint64_t begin_ = 0, tokens_ = 0;
};

}  // namespace

std::unique_ptr<TextSource> windows_of(const TextSettings& settings, const Vocabulary& vocabulary) {
  return std::make_unique<Windows>(settings, vocabulary);
}

}  // namespace longhand::tasks
