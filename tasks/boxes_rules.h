#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/options.h"
#include "tasks/vocabulary.h"

namespace longhand::tasks {

/// The options of the task `boxes`, for the generator and for the check.
struct BoxesRules {
  enum class Length { fixed, log_uniform, rounded };
  enum class Occupied { any, start, at_most, exactly };
  enum class Split { train, test, all };

  explicit BoxesRules(const OptionValues& options);
  static std::vector<TaskOption> options();

  int half() const { return boxes / 2; }
  /// Upper bounds on the number of tokens of a prompt and of an answer. Special tokens do not
  /// count.
  std::int64_t longest_prompt() const;
  std::int64_t longest_answer() const;

  bool advanced = false;  // move the contents of whole boxes, and do not mention empty boxes
  int boxes = 7;
  int objects = 100;
  int most_items = 3;   // maximum number of objects in a box
  int operations = 32;  // number of operations; unless Length is `fixed`, the maximum number
  Length length = Length::fixed;
  Occupied occupied = Occupied::any;
  // true: at first, each non-empty box contains one object; false: Poisson(2) objects, at most
  // most_items.
  bool one_at_start = false;
  bool shuffled = true;  // shuffle the clauses of the first sentence
  /// true: first draw the kind of operation among the possible kinds, then the boxes and objects.
  bool feasible_kinds = false;
  bool one_put = false;  // true: put one object at a time; false: Poisson(1) objects
  Split split = Split::train;
};

/// The first `count` objects in alphabetical order.
std::vector<std::string_view> boxes_objects(int count);

/// The vocabulary of words. The text of a word's token begins with a space, so that the text of a
/// sentence is the concatenation of the texts of its tokens.
WordVocabulary boxes_vocabulary(const BoxesRules& rules);

inline constexpr std::string_view boxes_begin = "<begin>";
inline constexpr std::string_view boxes_answer = " <answer>";
inline constexpr std::string_view boxes_end = " <end>";

}  // namespace longhand::tasks
