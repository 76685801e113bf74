#pragma once

#include <span>
#include <string>
#include <string_view>

namespace longhand {

/// "; did you mean NAME?", the known name that is nearest to a mistyped word, or `otherwise` where
/// none is near: with at most a third of the word's letters changed, added, left out or swapped.
std::string did_you_mean(std::string_view word, std::span<const std::string> known,
                         std::string_view otherwise = {});

}  // namespace longhand
