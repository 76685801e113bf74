#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "tasks/boxes_rules.h"

namespace longhand::tasks {

/// The objects in each box, by the letter of the box.
using BoxesContents = std::map<char, std::set<std::string, std::less<>>>;

/// Executes a prompt sentence by sentence and returns the final contents of the boxes. Does not use
/// code of the generator of samples. Throws an Error if a sentence cannot be parsed, contradicts
/// the contents of the boxes, or breaks a rule of the task.
BoxesContents replay_boxes(std::string_view prompt, const BoxesRules& rules,
                           const Vocabulary& vocabulary);

/// The right answer: a sentence that describes these contents of the boxes.
std::string describe_boxes(const BoxesContents& contents, const BoxesRules& rules);

/// Throws an Error that describes the mistake if the answer has a wrong form or does not describe
/// `contents`.
void check_boxes_answer(std::string_view answer, const BoxesContents& contents,
                        const BoxesRules& rules, const Vocabulary& vocabulary);

}  // namespace longhand::tasks
