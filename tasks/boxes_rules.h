#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/options.h"
#include "tasks/vocabulary.h"

namespace longhand::tasks {

/// The options of the task `boxes`, used to generate samples and to check answers.
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

  // true: a move takes all objects of a box, and empty boxes are not mentioned.
  bool advanced = false;
  int boxes = 7;
  int objects = 100;
  int most_items = 3;  // maximum number of objects in a box
  // Number of operations of every sample if `length` is Length::fixed. Otherwise, each sample has a
  // random number of operations, and this is the maximum.
  int operations = 32;
  Length length = Length::fixed;
  Occupied occupied = Occupied::any;
  // true: each non-empty box initially contains one object; false: a Poisson(2) number of objects,
  // limited to most_items
  bool one_at_start = false;
  bool shuffled = true;  // true: the clauses of the first sentence are shuffled
  /// true: draw the kind of operation from the possible kinds, then the boxes and objects; false:
  /// draw kind, boxes and objects again until the operation is possible
  bool feasible_kinds = false;
  // true: put one object at a time; false: a Poisson(1) number of objects, but at least 1.
  bool one_put = false;
  Split split = Split::train;
};

/// Selects the first `count` words of a fixed list of objects, which is in order of word frequency,
/// and returns the selected words in alphabetical order.
std::vector<std::string_view> boxes_objects(int count);

/// The vocabulary of the task: words, punctuation marks and special tokens. The text of a word's
/// token begins with a space, so that the text of a sentence is the concatenation of the texts of
/// its tokens.
WordVocabulary boxes_vocabulary(const BoxesRules& rules);

inline constexpr std::string_view boxes_begin = "<begin>";
inline constexpr std::string_view boxes_answer = " <answer>";
inline constexpr std::string_view boxes_end = " <end>";

}  // namespace longhand::tasks
