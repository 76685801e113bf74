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

/// What the samples of task text depend on.
struct TextSettings {
  TextSettings() = default;
  explicit TextSettings(const OptionValues& options);

  std::filesystem::path text, validation;  // files; without the second, the end of the first
  std::string tokenizer;                   // "bytes", or what read_tokenizer() reads
  double held_out = 0;
  std::int64_t length = 0;  // tokens that a sample learns, at most
  bool lossy = false;
  bool validates = false;          // samples are those for validation
  std::string separator;           // between documents; empty: there is one
  std::vector<std::int32_t> ends;  // tokens after which there is no more to be said
  // Of records.
  bool of_records = false;    // {"prompt", "answer"}, one a line
  std::string chat_template;  // a name of nn::ChatTemplate, or "none"
  std::string date;           // for the template
  std::string instruction;    // before every prompt
  std::int64_t examples = 0;  // records at the text's beginning that are shown before it, too
  bool cuts = false;          // a record that is too long loses its end; else it is refused

  bool of_bytes() const { return tokenizer == "bytes"; }
  bool another_file() const { return !validation.empty(); }
  const std::filesystem::path& file() const {
    return validates && another_file() ? validation : text;
  }
  /// The text and the one for validation, by name.
  std::vector<std::pair<std::string, std::filesystem::path>> files() const;
  /// What ends a document, in tokens: the first of `ends`; where there is none, the separator.
  std::vector<std::int32_t> end_of_document(const Vocabulary& vocabulary) const;
  ConversationFormat format(const Vocabulary& vocabulary) const;
  /// [begin, end) of the part that samples come from, of `count` in the file: what is held out is
  /// the last.
  struct FilePart {
    std::uint64_t begin, end;
  };
  FilePart part_of(std::uint64_t count) const;
};

}  // namespace longhand::tasks
