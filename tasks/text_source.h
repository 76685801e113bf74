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
  /// As Task::sample_at() has it.
  virtual Sample sample_at(std::uint64_t number, double shift) const = 0;
};

/// Windows of the text's tokens, which follow one another: a window's last token is the next one's
/// first, so that each is learned once. Before each stands what the tokenizer puts before a text,
/// which is only read: a model that was trained with it says little without.
///
/// In training all have the same length, and the shift moves them all by a part of what is left
/// over, which is about a window. In validation they begin at the part's first token, and the last
/// may be shorter.
///
/// Documents stand one after another, each with its end, and windows are cut without regard to
/// them: a token sees what is before it in its window, of earlier documents too. What is held out
/// begins with a document.
std::unique_ptr<TextSource> windows_of(const TextSettings& settings, const Vocabulary& vocabulary);

/// Questions and answers. The answer and its end are learned, the prompt is only read. All records
/// are looked at when the file is opened.
std::unique_ptr<TextSource> records_of(const TextSettings& settings, const Vocabulary& vocabulary);

}  // namespace longhand::tasks
