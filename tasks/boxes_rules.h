#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/options.h"
#include "tasks/vocabulary.h"

namespace longhand::tasks {

/// What the options of the boxes task say, for the generator and for the check alike.
struct BoxesRules {
  enum class Length { fixed, log_uniform, rounded };
  enum class Occupied { any, start, at_most, exactly };
  enum class Split { train, test, all };

  explicit BoxesRules(const OptionValues& options);
  static std::vector<Option> options();

  int half() const { return boxes / 2; }
  /// Upper bounds of the tokens of a prompt and of an answer, special ones not counted.
  std::int64_t longest_prompt() const;
  std::int64_t longest_answer() const;

  bool advanced = false;  // whole boxes move, empty boxes are not mentioned
  int boxes = 7;
  int objects = 100;
  int most_items = 3;   // in a box
  int operations = 32;  // or at most so many
  Length length = Length::fixed;
  Occupied occupied = Occupied::any;
  bool one_at_start = false;    // in every box that holds something; else Poisson(2)
  bool shuffled = true;         // the clauses of the first sentence
  bool feasible_kinds = false;  // the kind is drawn first, among those that are possible
  bool one_put = false;         // at a time; else Poisson(1)
  Split split = Split::train;
};

/// The objects a task has, in the order of their spelling.
std::vector<std::string_view> boxes_objects(int count);

/// Words with the space before them, so that tokens side by side are the text.
WordVocabulary boxes_vocabulary(const BoxesRules& rules);

inline constexpr std::string_view boxes_begin = "<begin>";
inline constexpr std::string_view boxes_answer = " <answer>";
inline constexpr std::string_view boxes_end = " <end>";

}  // namespace longhand::tasks
