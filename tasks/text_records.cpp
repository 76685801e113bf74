#include <algorithm>

#include "core/data_file.h"
#include "core/error.h"
#include "tasks/answers.h"
#include "tasks/text_source.h"

namespace longhand::tasks {
namespace {

/// The non-empty lines of a file. Only their offsets are in memory.
class Lines {
 public:
  explicit Lines(const std::filesystem::path& path) : name_(path.string()), file_(path) {
    Line line{.number = 1};
    bool is_blank = true;
    const auto end_line = [&](std::uint64_t end) {
      line.end = end;
      require_short(line);
      if (!is_blank) places_.push_back(line);
      line = {.begin = end + 1, .number = line.number + 1};
      is_blank = true;
    };
    std::string piece;
    for (std::uint64_t begin = 0; begin < file_.size(); begin += piece.size()) {
      piece.resize(std::min<std::uint64_t>(file_.size() - begin, 1 << 20));
      file_.read(begin, std::as_writable_bytes(std::span(piece)));
      for (std::size_t i = 0; i < piece.size(); ++i) {
        const char c = piece[i];
        if (c == '\n') {
          end_line(begin + i);
        } else if (c != ' ' && c != '\t' && c != '\r') {
          is_blank = false;
        }
      }
    }
    if (line.begin < file_.size()) end_line(file_.size());
  }

  std::uint64_t size() const { return places_.size(); }
  std::string place(std::uint64_t i) const { return text(name_, ':', places_.at(i).number); }
  Answer operator[](std::uint64_t i) const {
    const Line& place = places_.at(i);
    std::string line(place.end - place.begin, ' ');
    file_.read(place.begin, std::as_writable_bytes(std::span(line)));
    return Answer::parse(line, this->place(i));
  }

 private:
  struct Line {
    std::uint64_t begin = 0, end = 0;
    std::int64_t number = 0;
  };
  void require_short(const Line& line) const {
    LONGHAND_CHECK(line.end - line.begin <= Answer::longest_line, name_, ':', line.number,
                   ": expected a line of at most ", Answer::longest_line, " bytes, got ",
                   line.end - line.begin);
  }

  std::string name_;
  DataFile file_;
  std::vector<Line> places_;
};

class Records final : public TextSource {
 public:
  Records(const TextSettings& settings, const Vocabulary& vocabulary, ConversationFormat format)
      : lines_(settings.file()),
        length_(static_cast<std::size_t>(settings.length)),
        cuts_(settings.cuts),
        size_(vocabulary.size()),
        format_(std::move(format)) {
    const std::string& name = settings.file().string();
    before_ = settings.instruction;
    if (settings.examples > 0) {
      const Lines first(settings.text);
      const auto wanted = static_cast<std::uint64_t>(settings.examples);
      LONGHAND_CHECK(first.size() >= wanted, settings.text.string(), ": expected at least ", wanted,
                     " records, which are shown as examples, got ", first.size());
      for (std::uint64_t i = 0; i < wanted; ++i) {
        const Answer example = first[i];
        before_ += example.prompt + example.answer + "\n";
      }
    }
    const TextSettings::FilePart part = settings.part_of(lines_.size());
    const bool from_the_text = !settings.validates || !settings.another_file();
    begin_ = from_the_text ? std::max(part.begin, static_cast<std::uint64_t>(settings.examples))
                           : part.begin;
    LONGHAND_CHECK(begin_ < part.end, name, ": expected records for ",
                   settings.validates ? "validation" : "training", ", got ", lines_.size(),
                   " in all, ", settings.examples, " of them examples");
    count_ = part.end - begin_;
    // Makes every sample once, so that errors are reported before training starts.
    for (std::uint64_t i = 0; i < count_; ++i) sample_at(i, 0);
  }

  std::uint64_t count() const override { return count_; }

  Sample sample_at(std::uint64_t number, double) const override {
    LONGHAND_CHECK(number < count_, "expected a record below ", count_, ", got ", number);
    const std::uint64_t line = begin_ + number;
    const Answer record = lines_[line];
    Sample sample;
    std::vector<std::int32_t> answer;
    try {
      sample.tokens = format_.prompt(
          std::vector<nn::ChatMessage>{{nn::ChatMessage::Role::user, before_ + record.prompt}});
      answer = format_.answer(record.answer);
    } catch (const Error& error) {
      fail(lines_.place(line), ": ", error.what());
    }
    const std::size_t prompt = sample.tokens.size();
    LONGHAND_CHECK(prompt > 0, lines_.place(line),
                   ": expected a prompt of at least one token, got none");
    LONGHAND_CHECK(!answer.empty(), lines_.place(line),
                   ": expected an answer of at least one token, got none");
    sample.tokens.insert(sample.tokens.end(), answer.begin(), answer.end());
    if (sample.tokens.size() > length_ + 1) {
      LONGHAND_CHECK(cuts_ && prompt <= length_, lines_.place(line), ": expected at most ",
                     length_ + 1, " tokens (--task.length ", length_, "), got ",
                     sample.tokens.size(), ", ", prompt, " of them before the answer");
      sample.tokens.resize(length_ + 1);
    }
    LONGHAND_CHECK(std::ranges::max(sample.tokens) < size_, lines_.place(line),
                   ": expected tokens below ", size_, ", got ", std::ranges::max(sample.tokens));
    sample.targets.assign(sample.tokens.size(), Sample::not_counted);
    std::copy(sample.tokens.begin() + static_cast<std::ptrdiff_t>(prompt), sample.tokens.end(),
              sample.targets.begin() + static_cast<std::ptrdiff_t>(prompt) - 1);
    return sample;
  }

 private:
  Lines lines_;
  std::size_t length_;
  bool cuts_;
  std::int32_t size_;  // size of the vocabulary
  ConversationFormat format_;
  std::string before_;  // the instruction and the examples before every prompt
  std::uint64_t begin_ = 0, count_ = 0;
};

}  // namespace

std::unique_ptr<TextSource> records_of(const TextSettings& settings, const Vocabulary& vocabulary) {
  return std::make_unique<Records>(settings, vocabulary, settings.format(vocabulary));
}

}  // namespace longhand::tasks
