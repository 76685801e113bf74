#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/options.h"
#include "tasks/vocabulary.h"

namespace longhand::tasks {

/// The options of the boxes task, shared by the generator and the check.
struct BoxesRules {
  enum class Length { fixed, log_uniform, rounded };
  enum class Occupied { any, start, at_most, exactly };
  enum class Split { train, test, all };

  explicit BoxesRules(const OptionValues& options);
  static std::vector<Option> options();

  int half() const { return boxes / 2; }
  /// Upper bounds on the tokens of a prompt and of an answer, without special tokens.
  std::int64_t longest_prompt() const;
  std::int64_t longest_answer() const;

  bool advanced = false;  // whole boxes move, and empty boxes are not mentioned
  int boxes = 7;
  int objects = 100;
  int most_items = 3;   // maximum in a box
  int operations = 32;  // number of operations, or its maximum
  Length length = Length::fixed;
  Occupied occupied = Occupied::any;
  // one object initially in every box that contains something; otherwise Poisson(2)
  bool one_at_start = false;
  bool shuffled = true;         // shuffle the clauses of the first sentence
  bool feasible_kinds = false;  // draw the kind of operation first, among those that are possible
  bool one_put = false;         // put one object at a time; otherwise Poisson(1)
  Split split = Split::train;
};

/// The objects of a task, sorted alphabetically.
std::vector<std::string_view> boxes_objects(int count);

/// Words with their preceding space, so that concatenated tokens form the text.
WordVocabulary boxes_vocabulary(const BoxesRules& rules);

inline constexpr std::string_view boxes_begin = "<begin>";
inline constexpr std::string_view boxes_answer = " <answer>";
inline constexpr std::string_view boxes_end = " <end>";

}  // namespace longhand::tasks
