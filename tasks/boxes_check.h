#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "tasks/boxes_rules.h"

namespace longhand::tasks {

/// The contents of each box, by its letter.
using BoxesContents = std::map<char, std::set<std::string, std::less<>>>;

/// Replays a prompt sentence by sentence, independently of the generator. Throws an Error that
/// names a sentence that cannot be parsed, contradicts the state, or breaks a rule.
BoxesContents replay_boxes(std::string_view prompt, const BoxesRules& rules,
                           const Vocabulary& vocabulary);

/// The sentence that describes the contents.
std::string describe_boxes(const BoxesContents& contents, const BoxesRules& rules);

/// Throws an Error that says what is wrong with an answer: its wording, or the contents of a box.
void check_boxes_answer(std::string_view answer, const BoxesContents& contents,
                        const BoxesRules& rules, const Vocabulary& vocabulary);

}  // namespace longhand::tasks
