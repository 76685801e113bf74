#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "tasks/boxes_rules.h"

namespace longhand::tasks {

/// What each box holds, by its letter.
using BoxesContents = std::map<char, std::set<std::string, std::less<>>>;

/// Reads a prompt sentence by sentence and does what it says, apart from the generator: an Error
/// names the sentence that is none, that contradicts the state, or that the rules forbid.
BoxesContents replay_boxes(std::string_view prompt, const BoxesRules& rules,
                           const Vocabulary& vocabulary);

/// The sentence that describes the contents.
std::string describe_boxes(const BoxesContents& contents, const BoxesRules& rules);

/// An Error says what is wrong with an answer: its wording, or what it says of a box.
void check_boxes_answer(std::string_view answer, const BoxesContents& contents,
                        const BoxesRules& rules, const Vocabulary& vocabulary);

}  // namespace longhand::tasks
