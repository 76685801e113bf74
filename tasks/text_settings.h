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

/// The settings that determine the samples of the task `text`.
struct TextSettings {
  TextSettings() = default;
  explicit TextSettings(const OptionValues& options);

  // Paths of the files. If `validation` is empty, the end of `text` is used for validation.
  std::filesystem::path text, validation;
  std::string tokenizer;  // "bytes", or a path to be passed to read_tokenizer()
  double held_out = 0;
  // Maximum number of tokens of a sample. The last token, which is only predicted, and the tokens
  // that a tokenizer adds before a window are not counted.
  std::int64_t length = 0;
  bool lossy = false;
  bool validates = false;  // true: the samples are for validation
  std::string separator;   // text between two documents; empty: the text is a single document
  std::vector<std::int32_t> ends;  // tokens that end an answer
  // The following settings are used only if the text consists of records.
  bool of_records = false;    // each line is a record {"prompt", "answer"}
  std::string chat_template;  // a name of nn::ChatTemplate, or "none"
  std::string date;           // date in the chat template's system message
  std::string instruction;    // text that precedes every prompt
  // The first `examples` records of the text precede every prompt as examples.
  std::int64_t examples = 0;
  /// true: the end of a record that is too long is cut off; false: a record that is too long is an
  /// Error
  bool cuts = false;

  bool of_bytes() const { return tokenizer == "bytes"; }
  bool another_file() const { return !validation.empty(); }
  const std::filesystem::path& file() const {
    return validates && another_file() ? validation : text;
  }
  /// The files with their names: the training text is `text`, and a validation text, if there is
  /// one, is `validation`.
  std::vector<std::pair<std::string, std::filesystem::path>> files() const;
  /// The tokens that end a document. If `ends` is empty or each byte is a token, they are the
  /// tokens of the separator. In all other cases, a document ends with a single token, the first of
  /// `ends`.
  std::vector<std::int32_t> end_of_document(const Vocabulary& vocabulary) const;
  ConversationFormat format(const Vocabulary& vocabulary) const;
  /// The part of a file from which samples are made. It is the range [begin, end) of the file's
  /// records or, if the text does not consist of records, of its tokens. Without a validation file,
  /// the share `held_out` at the end of the file is the part for validation. Unless `held_out` is
  /// 0, this part contains at least one record or two tokens.
  struct FilePart {
    std::uint64_t begin, end;
  };
  /// `count` is the number of records or tokens of the whole file.
  FilePart part_of(std::uint64_t count) const;
};

}  // namespace longhand::tasks
