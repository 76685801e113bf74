#pragma once

#include <cstdint>
#include <memory>

#include "tasks/task.h"
#include "tasks/text_settings.h"

namespace longhand::tasks {

/// The samples of a text, by number.
class TextSource {
 public:
  virtual ~TextSource() = default;
  virtual std::uint64_t count() const = 0;
  /// See Task::sample_at().
  virtual Sample sample_at(std::uint64_t number, double shift) const = 0;
};

/// Adjacent windows of the text's tokens. The last token of a window is the first of the next, so
/// that each token is predicted once. Each window starts with the tokens that the tokenizer adds
/// before a text. They are input only, but models trained with them need them.
///
/// In training all windows have the same length, and `shift` offsets them by a fraction of the
/// remaining tokens, which are about one window. In validation they start at the first token, and
/// the last window may be shorter.
///
/// Documents follow one another, each with its end tokens, and windows ignore their boundaries: a
/// token sees all tokens before it in its window, including those of earlier documents. The
/// validation part begins with a document.
std::unique_ptr<TextSource> windows_of(const TextSettings& settings, const Vocabulary& vocabulary);

/// Records with a question and an answer. The answer and its end are trained; the prompt is input
/// only. All records are checked when the file is opened.
std::unique_ptr<TextSource> records_of(const TextSettings& settings, const Vocabulary& vocabulary);

}  // namespace longhand::tasks
