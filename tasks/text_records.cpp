#include <algorithm>

#include "core/error.h"
#include "tasks/answers.h"
#include "tasks/record_file.h"
#include "tasks/text_source.h"

namespace longhand::tasks {
namespace {

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
      const RecordFile first(settings.text);
      const auto wanted = static_cast<std::uint64_t>(settings.examples);
      LONGHAND_CHECK(first.size() >= wanted, settings.text.string(), ": expected at least ", wanted,
                     " records to show as examples, got ", first.size());
      for (std::uint64_t i = 0; i < wanted; ++i) {
        const Answer example = Answer::parse(first.line(i), first.place(i));
        before_ += example.prompt + example.answer + "\n";
      }
    }
    const TextSettings::FilePart part = settings.part_of(lines_.size());
    const bool from_the_text = !settings.validates || !settings.another_file();
    begin_ = from_the_text ? std::max(part.begin, static_cast<std::uint64_t>(settings.examples))
                           : part.begin;
    LONGHAND_CHECK(begin_ < part.end, name, ": expected at least one record for ",
                   settings.validates ? "validation" : "training", ", got none: the file has ",
                   lines_.size(), " records, and ", settings.examples,
                   " records are shown as examples before every prompt",
                   from_the_text ? "; --task.held-out 0 trains on all records" : "");
    count_ = part.end - begin_;
    // Makes every sample once, so that errors are reported before training starts.
    for (std::uint64_t i = 0; i < count_; ++i) sample_at(i, 0);
  }

  std::uint64_t count() const override { return count_; }

  Sample sample_at(std::uint64_t number, double) const override {
    LONGHAND_CHECK(number < count_, "expected a record number below ", count_, ", got ", number);
    const std::uint64_t line = begin_ + number;
    const Answer record = Answer::parse(lines_.line(line), lines_.place(line));
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
                     sample.tokens.size(), " tokens, of which ", prompt, " are before the answer");
      sample.tokens.resize(length_ + 1);
    }
    LONGHAND_CHECK(std::ranges::max(sample.tokens) < size_, lines_.place(line),
                   ": expected token ids below ", size_, ", got ", std::ranges::max(sample.tokens));
    sample.targets.assign(sample.tokens.size(), Sample::not_counted);
    std::copy(sample.tokens.begin() + static_cast<std::ptrdiff_t>(prompt), sample.tokens.end(),
              sample.targets.begin() + static_cast<std::ptrdiff_t>(prompt) - 1);
    for (std::size_t i = prompt; i < sample.tokens.size(); ++i) {
      sample.asked.push_back(static_cast<std::int32_t>(i - 1));
    }
    return sample;
  }

 private:
  RecordFile lines_;
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
