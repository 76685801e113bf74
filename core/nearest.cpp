#include "core/nearest.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/error.h"

namespace longhand {
namespace {

constexpr std::size_t longest_word = 64;  // maximum number of letters of words that are compared

/// Minimum number of edits that turn a into b. An edit changes, inserts or deletes a letter, or
/// exchanges two neighbouring letters (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string did_you_mean(std::string_view word, std::span<const std::string> known,
                         std::string_view otherwise) {
  if (word.size() < 2 || word.size() > longest_word) return std::string(otherwise);
  std::size_t least = word.size() / 3 + 1;
  std::string_view nearest;
  for (const std::string& name : known) {
    if (name.size() > longest_word) continue;
    const std::size_t far = distance(word, name);
    if (far < least || (far == 1 && nearest.empty())) {
      least = far;
      nearest = name;
    }
  }
  return nearest.empty() ? std::string(otherwise) : text("; did you mean ", nearest, "?");
}

}  // namespace longhand
