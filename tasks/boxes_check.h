#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "tasks/boxes_rules.h"

namespace longhand::tasks {

/// The objects in each box, by the letter of the box.
using BoxesContents = std::map<char, std::set<std::string, std::less<>>>;

/// Executes a prompt sentence by sentence and returns the final contents. Does not use code of the
/// generator. Throws an Error that quotes a sentence if the sentence cannot be parsed, contradicts
/// the contents of the boxes, or breaks a rule.
BoxesContents replay_boxes(std::string_view prompt, const BoxesRules& rules,
                           const Vocabulary& vocabulary);

/// The right answer: a sentence that describes the contents.
std::string describe_boxes(const BoxesContents& contents, const BoxesRules& rules);

/// Throws an Error that describes the mistake if the answer has a wrong form or does not describe
/// `contents`.
void check_boxes_answer(std::string_view answer, const BoxesContents& contents,
                        const BoxesRules& rules, const Vocabulary& vocabulary);

}  // namespace longhand::tasks
