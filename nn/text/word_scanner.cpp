#include "nn/text/word_scanner.h"

#include <array>
#include <utility>

namespace longhand::nn {
namespace {

constexpr std::array<std::pair<std::string_view, WordPattern>, 3> expressions{{
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     WordPattern::gpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     WordPattern::llama3},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     WordPattern::qwen2},
}};

constexpr std::array<std::pair<std::string_view, WordPattern>, 5> names{{
    {"gpt2", WordPattern::gpt2},
    {"llama3", WordPattern::llama3},
    {"qwen2", WordPattern::qwen2},
    {"digits-gpt2", WordPattern::digits_gpt2},
    {"spaces", WordPattern::spaces},
}};

}  // namespace

std::optional<WordPattern> known_pattern(std::string_view wanted) {
  for (const auto& [expression, pattern] : expressions) {
    if (expression == wanted) return pattern;
  }
  return std::nullopt;
}

std::string_view regular_expression(WordPattern wanted) {
  for (const auto& [expression, pattern] : expressions) {
    if (pattern == wanted) return expression;
  }
  return {};
}

std::string_view name_of(WordPattern pattern) {
  for (const auto& [name, named] : names) {
    if (named == pattern) return name;
  }
  return {};
}

std::optional<WordPattern> pattern_named(std::string_view name) {
  for (const auto& [known, pattern] : names) {
    if (known == name) return pattern;
  }
  return std::nullopt;
}

}  // namespace longhand::nn
