#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tasks/conversation.h"
#include "tasks/options.h"
#include "tasks/vocabulary.h"

namespace longhand::tasks {

/// The settings that determine the samples of task text.
struct TextSettings {
  TextSettings() = default;
  explicit TextSettings(const OptionValues& options);

  // files; without the second, validation uses the end of the first
  std::filesystem::path text, validation;
  std::string tokenizer;  // "bytes", or a path for read_tokenizer()
  double held_out = 0;
  std::int64_t length = 0;  // maximum trained tokens of a sample
  bool lossy = false;
  bool validates = false;          // samples are for validation
  std::string separator;           // text between documents; empty: one document
  std::vector<std::int32_t> ends;  // tokens that end an answer
  // Settings of records.
  bool of_records = false;    // one {"prompt", "answer"} per line
  std::string chat_template;  // a name of nn::ChatTemplate, or "none"
  std::string date;           // date shown by the template
  std::string instruction;    // text before every prompt
  // records from the start of the text that are shown before every prompt
  std::int64_t examples = 0;
  bool cuts = false;  // cut the end off a record that is too long; otherwise it is refused

  bool of_bytes() const { return tokenizer == "bytes"; }
  bool another_file() const { return !validation.empty(); }
  const std::filesystem::path& file() const {
    return validates && another_file() ? validation : text;
  }
  /// The training text and, if there is one, the validation text, by name.
  std::vector<std::pair<std::string, std::filesystem::path>> files() const;
  /// The tokens that end a document: the first of `ends` or, if there is none, the separator.
  std::vector<std::int32_t> end_of_document(const Vocabulary& vocabulary) const;
  ConversationFormat format(const Vocabulary& vocabulary) const;
  /// The range [begin, end) that samples come from, out of `count` in the file. The held-out part
  /// is at the end.
  struct FilePart {
    std::uint64_t begin, end;
  };
  FilePart part_of(std::uint64_t count) const;
};

}  // namespace longhand::tasks
