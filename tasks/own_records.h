#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/answers.h"
#include "tasks/conversation.h"
#include "tasks/options.h"
#include "tasks/record_file.h"
#include "tasks/task.h"
#include "tasks/task_files.h"

/// The settings and samples of a task made from the user's files (tasks/own_task.h).
namespace longhand::tasks {

inline constexpr std::int64_t longest_record = 1 << 20;  // maximum tokens of a record
inline constexpr std::string_view validation_name = "validation";
inline constexpr std::string_view default_between = "\n";

/// True if `tokenizer` is "characters" or "spaces", which means that the vocabulary consists of the
/// characters or words of the files.
bool learns_tokens(std::string_view tokenizer);

/// Splits a text into characters, or into words at spaces, and calls `take` with each of them.
void split_tokens(std::string_view text, bool into_words,
                  const std::function<void(std::string_view)>& take);

/// The settings that all files of a task share. They are read from the options of the task.
struct OwnSettings {
  explicit OwnSettings(const OptionValues& options);

  bool has_template() const { return chat_template != "none"; }
  /// True if records may refer to tokens by index. This requires that every character, word or byte
  /// is a token, without a chat template. In all other cases, the tokens of prompt and answer may
  /// depend on the text around them.
  bool counts_tokens() const;
  /// True if the samples are the held-out end of the training file.
  bool is_held_out() const { return held_out > 0 && part == validation_name; }

  std::vector<TaskFile> files;  // the first is the training file
  std::string tokenizer, chat_template;
  std::string between, after;  // `between` separates prompt and answer; `after` ends an answer
  // The part of the data to read: the name of a file (TaskFile::name), or validation_name for the
  // end of the training file.
  std::string part;
  double held_out = 0;       // held-out share of the training file, at its end
  std::int64_t longest = 0;  // maximum number of tokens of a training sample; 0: unknown
  /// The labels that tokens may have, in the order of their classes. Empty: the task has answers
  /// instead of labels.
  std::vector<std::string> labels;
  std::map<std::string, std::int32_t, std::less<>> class_of;  // the class of each label
  std::int64_t predictions = 1;                               // number of labels of a token
};

/// The records of one part of a task: the training file, its held-out end, or another file.
class OwnRecords {
 public:
  /// Makes every sample once, so that errors are reported before training starts.
  OwnRecords(const OwnSettings& settings, const Vocabulary& vocabulary,
             const ConversationFormat& format);

  std::uint64_t count() const { return end_ - begin_; }
  std::int64_t longest() const { return longest_; }  // tokens of the longest sample
  std::string place(std::uint64_t number) const { return records_.place(begin_ + number); }
  Answer record(std::uint64_t number) const;
  Sample sample_at(std::uint64_t number) const;

 private:
  /// Returns the result of `encode`. If `encode` throws an Error, this function throws an Error
  /// with the same message after `place`, the file and line of the record.
  std::vector<std::int32_t> encoded(const std::string& place,
                                    const std::function<std::vector<std::int32_t>()>& encode) const;
  std::vector<std::int32_t> prompt_tokens(const Answer& record, const std::string& place) const;
  /// Makes a sample whose tokens are the prompt and whose targets are the labels of these tokens.
  Sample labelled(const Answer& record, const RecordMarks& marks, const std::string& place) const;
  void check_tokens(const Sample& sample, const std::string& place) const;
  /// The reference attention of a sample, from the pairs of tokens in a record. A sample also
  /// contains the text between prompt and answer, but the indices in the record do not count the
  /// tokens of this text.
  std::vector<ReferenceRow> rows_of(const RecordMarks& marks, std::int64_t prompt,
                                    std::int64_t begin, std::int64_t end,
                                    const std::string& place) const;

  const OwnSettings& settings_;
  const ConversationFormat& format_;
  std::vector<std::int32_t> between_;
  std::int32_t size_;  // size of the vocabulary
  RecordFile records_;
  std::uint64_t begin_ = 0, end_ = 0;
  std::int64_t longest_ = 1;
};

}  // namespace longhand::tasks
