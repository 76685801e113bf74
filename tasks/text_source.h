#pragma once

#include <cstdint>
#include <memory>

#include "tasks/task.h"
#include "tasks/text_settings.h"

namespace longhand::tasks {

/// The samples of a text. They are numbered from 0.
class TextSource {
 public:
  virtual ~TextSource() = default;
  virtual std::uint64_t count() const = 0;
  /// See Task::sample_at().
  virtual Sample sample_at(std::uint64_t number, double shift) const = 0;
};

/// Cuts a text into adjacent windows. The last token of a window is also the first token of the
/// next window, so each token is predicted exactly once. The tokens that the tokenizer adds before
/// a text are inserted before each window. They are not predicted, but models that were trained
/// with them need them.
///
/// In training, all windows have the same length. An epoch leaves about one or two windows of
/// tokens unused, so the first window can start at different tokens. `shift` is the fraction of the
/// unused tokens that precedes the first window. In validation, the first window starts at the
/// first token, and the last window may be shorter.
///
/// Documents follow one another, each with its end tokens. A window may contain several documents.
/// A token sees all earlier tokens of its window, including those of earlier documents. The
/// validation part of a text starts at the start of a document.
std::unique_ptr<TextSource> windows_of(const TextSettings& settings, const Vocabulary& vocabulary);

/// Makes one sample of each record. The answer and its end are targets. The prompt is only input.
/// All records are checked when the file is opened.
std::unique_ptr<TextSource> records_of(const TextSettings& settings, const Vocabulary& vocabulary);

}  // namespace longhand::tasks
