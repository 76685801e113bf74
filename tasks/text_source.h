#pragma once

#include <cstdint>
#include <memory>

#include "tasks/task.h"
#include "tasks/text_settings.h"

namespace longhand::tasks {

/// The numbered samples of a text.
class TextSource {
 public:
  virtual ~TextSource() = default;
  virtual std::uint64_t count() const = 0;
  /// See Task::sample_at().
  virtual Sample sample_at(std::uint64_t number, double shift) const = 0;
};

/// Adjacent windows of the text's tokens. The last token of a window is the first of the next, so
/// each token is predicted once. Each window starts with the tokens that the tokenizer puts before
/// a text. They are only read, but models trained with them need them.
///
/// In training all windows have the same length, and `shift` offsets them by a part of the
/// remainder, which is about a window. In validation they start at the first token of the part, and
/// the last may be shorter.
///
/// Documents follow one another, each with its end, and windows ignore their boundaries: a token
/// sees everything before it in its window, including earlier documents. The held-out part begins
/// with a document.
std::unique_ptr<TextSource> windows_of(const TextSettings& settings, const Vocabulary& vocabulary);

/// Questions and answers. The answer and its end are trained; the prompt is only read. All records
/// are checked when the file is opened.
std::unique_ptr<TextSource> records_of(const TextSettings& settings, const Vocabulary& vocabulary);

}  // namespace longhand::tasks
