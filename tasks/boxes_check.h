#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "tasks/boxes_rules.h"

namespace longhand::tasks {

/// For each box, by its letter, the objects in it.
using BoxesContents = std::map<char, std::set<std::string, std::less<>>>;

/// Applies a prompt sentence by sentence, independently of the generator. Throws an Error that
/// quotes the first sentence that cannot be parsed, contradicts the contents of the boxes, or
/// breaks a rule.
BoxesContents replay_boxes(std::string_view prompt, const BoxesRules& rules,
                           const Vocabulary& vocabulary);

/// The answer: a sentence that describes the contents.
std::string describe_boxes(const BoxesContents& contents, const BoxesRules& rules);

/// Throws an Error that describes the mistake if an answer has a wrong form or describes wrong
/// contents.
void check_boxes_answer(std::string_view answer, const BoxesContents& contents,
                        const BoxesRules& rules, const Vocabulary& vocabulary);

}  // namespace longhand::tasks
