#pragma once

#include <span>
#include <string>
#include <string_view>

namespace longhand {

/// Returns "; did you mean NAME?" with the known name that is most similar to a mistyped word.
/// Returns `otherwise` if more than a third of the word's letters would have to be changed,
/// inserted, deleted or exchanged.
std::string did_you_mean(std::string_view word, std::span<const std::string> known,
                         std::string_view otherwise = {});

}  // namespace longhand
