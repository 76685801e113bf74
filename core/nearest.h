#pragma once

#include <span>
#include <string>
#include <string_view>

namespace longhand {

/// "; did you mean NAME?" with the known name nearest to a mistyped word, or `otherwise` if none is
/// near. Near means that at most a third of the word's letters are changed, inserted, deleted or
/// exchanged.
std::string did_you_mean(std::string_view word, std::span<const std::string> known,
                         std::string_view otherwise = {});

}  // namespace longhand
