#include "tasks/boxes_check.h"

#include <algorithm>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/quote.h"

namespace longhand::tasks {
namespace {

using Items = std::vector<std::string>;

/// Splits a text at separators. Adjacent separators give empty parts.
std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> pieces;
  while (true) {
    const std::size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == text.npos) return pieces;
    text.remove_prefix(end + separator.size());
  }
}

std::vector<std::string_view> words_of(std::string_view text) { return split(text, " "); }

/// Reads a sentence or clause word by word. Error messages begin with `where`.
class Words {
 public:
  Words(std::string where, std::string_view text, const BoxesRules& rules,
        const Vocabulary& vocabulary)
      : where_(std::move(where)), rules_(rules), vocabulary_(vocabulary), words_(words_of(text)) {}

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(where_, ": ", parts...);
  }
  template <class... Parts>
  void require(bool condition, const Parts&... parts) const {
    if (!condition) refuse(parts...);
  }

  bool at_end() const { return at_ == words_.size(); }
  std::string_view here() const { return at_end() ? std::string_view() : words_[at_]; }
  /// If the next words are those of `text`, skips them and returns true.
  bool accept(std::string_view text) {
    const std::vector<std::string_view> wanted = words_of(text);
    const auto left = std::span(words_).subspan(at_);
    if (left.size() < wanted.size() || !std::ranges::equal(wanted, left.first(wanted.size()))) {
      return false;
    }
    at_ += wanted.size();
    return true;
  }
  void expect(std::string_view text) {
    for (const std::string_view word : words_of(text)) {
      require(accept(word), "expected ", quote(word), ", got ", got());
    }
  }
  void finish() const { require(at_end(), "expected the end of the sentence, got ", got()); }

  char box() {
    expect("Box");
    const std::string_view word = here();
    const char last = static_cast<char>('A' + rules_.boxes - 1);
    require(word.size() == 1 && word[0] >= 'A' && word[0] <= last, "expected a box from A to ",
            last, ", got ", got());
    ++at_;
    return word[0];
  }
  /// Parses "the x and the y and the z" and returns the objects in alphabetical order.
  Items list() {
    Items items;
    do {
      expect("the");
      require(is_object(here()), "expected an object, got ", got());
      items.emplace_back(here());
      ++at_;
      require(items.size() < 2 || items[items.size() - 2] < items.back(),
              "expected objects in alphabetical order, got the ", items.back(), " after the ",
              items.size() < 2 ? "" : items[items.size() - 2]);
    } while (accept("and"));
    return items;
  }

 private:
  std::string got() const { return at_end() ? "the end" : quote(words_[at_]); }

  /// True if a word consists of lower-case letters, is in the vocabulary and is not a word of the
  /// grammar.
  bool is_object(std::string_view word) const {
    static const std::set<std::string_view> grammar{"the",   "is",       "in",    "and",     "are",
                                                    "there", "nothing",  "to",    "from",    "of",
                                                    "into",  "contents", "empty", "contains"};
    return !word.empty() &&
           std::ranges::all_of(word, [](char c) { return c >= 'a' && c <= 'z'; }) &&
           !grammar.contains(word) && vocabulary_.find(" " + std::string(word)).has_value();
  }

  std::string where_;
  const BoxesRules& rules_;
  const Vocabulary& vocabulary_;
  std::vector<std::string_view> words_;
  std::size_t at_ = 0;
};

/// The maximum length of a sentence in characters. A sentence about 26 boxes with nine objects each
/// is shorter.
constexpr std::size_t longest_sentence = 10'000;

/// Removes the first sentence from the text and returns the sentence without its full stop.
std::string_view next_sentence(const std::string& where, std::string_view& text) {
  const std::size_t stop = text.find('.');
  LONGHAND_CHECK(stop != text.npos, where, ": expected a full stop, got ", quote(text));
  const std::string_view sentence = text.substr(0, stop);
  LONGHAND_CHECK(stop <= longest_sentence, where, ": expected at most ", longest_sentence,
                 " characters, got ", stop);
  text.remove_prefix(stop + 1);
  if (text.empty()) return sentence;
  LONGHAND_CHECK(text.starts_with(' ') && text.size() > 1, where,
                 ": expected a space and another sentence after the full stop, got ", quote(text));
  text.remove_prefix(1);
  return sentence;
}

class Replay {
 public:
  Replay(const BoxesRules& rules, const Vocabulary& vocabulary)
      : rules_(rules), vocabulary_(vocabulary) {
    for (int box = 0; box < rules.boxes; ++box) contents_[static_cast<char>('A' + box)];
  }

  void begin(std::string_view sentence) {
    const std::string where = "sentence 1";
    LONGHAND_CHECK(sentence.starts_with('T'), where,
                   ": expected a sentence that begins with \"The\" or \"There\", got ",
                   quote(sentence));
    std::string text(sentence);
    text[0] = 't';
    std::set<char> described;
    for (const std::string_view clause : split(text, ", ")) {
      LONGHAND_CHECK(described.size() < contents_.size(), where, ": expected at most ",
                     contents_.size(), " clauses, one for each box, got more");
      Words words(where, clause, rules_, vocabulary_);
      Items items;
      if (!rules_.advanced && words.accept("there")) {
        words.expect("is nothing in");
      } else {
        items = words.list();
        words.expect(items.size() == 1 ? "is in" : "are in");
      }
      const char box = words.box();
      words.finish();
      words.require(described.insert(box).second, "Box ", box, " is described twice");
      words.require(items.empty() || !rules_.one_at_start || items.size() == 1,
                    "expected one object in Box ", box, ", got ", items.size());
      for (const std::string& item : items) enter(words, item, box);
    }
    LONGHAND_CHECK(rules_.advanced || described.size() == contents_.size(), where, ": expected ",
                   contents_.size(), " clauses, one for each box, got ", described.size());
    const bool any = rules_.occupied == BoxesRules::Occupied::any;
    LONGHAND_CHECK(any || occupied() == rules_.half(), where, ": expected ", rules_.half(),
                   " non-empty boxes, got ", occupied());
  }

  void operate(const std::string& where, std::string_view sentence) {
    Words words(where, sentence, rules_, vocabulary_);
    if (words.accept("Move")) {
      move(words);
    } else if (words.accept("Remove")) {
      const Items items = words.list();
      words.expect("from");
      const char box = words.box();
      words.finish();
      for (const std::string& item : items) leave(words, item, box);
    } else if (words.accept("Put")) {
      const Items items = words.list();
      words.expect("into");
      const char box = words.box();
      words.finish();
      for (const std::string& item : items) enter(words, item, box);
    } else {
      words.refuse("expected \"Move\", \"Remove\" or \"Put\", got ", quote(words.here()));
    }
    const int now = occupied();
    using Occupied = BoxesRules::Occupied;
    words.require(rules_.occupied != Occupied::exactly || now == rules_.half(), "expected ",
                  rules_.half(), " non-empty boxes after this operation, got ", now);
    words.require(rules_.occupied != Occupied::at_most || now <= rules_.half(), "expected at most ",
                  rules_.half(), " non-empty boxes after this operation, got ", now);
    words.require(now > 0 || !rules_.advanced, "this operation leaves all boxes empty");
  }

  const BoxesContents& finish() const {
    std::size_t total = 0;
    for (const auto& [box, items] : contents_) total += items.size();
    LONGHAND_CHECK(total == inside_.size() && total + left_ == entered_,
                   "wrong number of objects: the boxes hold ", total, ", but ", entered_,
                   " were put in (including the initial objects) and ", left_, " were taken out");
    return contents_;
  }

 private:
  void move(Words& words) {
    Items items;
    const bool whole = words.accept("the contents of");
    if (!whole) {
      words.require(!rules_.advanced,
                    "expected \"Move the contents of\" and a box, got the names of objects");
      items = words.list();
      words.expect("from");
    }
    const char from = words.box();
    words.expect("to");
    const char to = words.box();
    words.finish();
    words.require(from != to, "expected two different boxes, got Box ", from, " twice");
    const auto& held = contents_.at(from);
    words.require(!held.empty(), "Box ", from, " is empty");
    if (whole) {
      items.assign(held.begin(), held.end());
    } else {
      words.require(!std::ranges::equal(items, held),
                    "expected the words \"the contents of\", because all objects of Box ", from,
                    " are moved");
    }
    for (const std::string& item : items) leave(words, item, from);
    for (const std::string& item : items) enter(words, item, to);
  }

  void enter(const Words& words, const std::string& item, char box) {
    words.require(inside_.insert(item).second, "the ", item, " is in a box already");
    auto& held = contents_.at(box);
    held.insert(item);
    words.require(held.size() <= static_cast<std::size_t>(rules_.most_items), "expected at most ",
                  rules_.most_items, " objects in Box ", box, ", got ", held.size());
    ++entered_;
  }

  void leave(const Words& words, const std::string& item, char box) {
    words.require(contents_.at(box).erase(item) == 1, "the ", item, " is not in Box ", box);
    inside_.erase(item);
    ++left_;
  }

  int occupied() const {
    return static_cast<int>(
        std::ranges::count_if(contents_, [](const auto& box) { return !box.second.empty(); }));
  }

  const BoxesRules& rules_;
  const Vocabulary& vocabulary_;
  BoxesContents contents_;
  std::set<std::string> inside_;
  // entered_ counts the objects that were put into a box, including the initial objects. left_
  // counts the objects that were taken out of a box. A moved object counts in both numbers.
  std::size_t entered_ = 0, left_ = 0;
};

std::string list_of(const std::set<std::string, std::less<>>& items) {
  std::string list;
  for (const std::string& item : items) list += (list.empty() ? "the " : " and the ") + item;
  return list.empty() ? "nothing" : list;
}

/// Removes `before` from the start of a text, and `after` from its end, if the text has them.
std::string_view without(std::string_view text, std::string_view before, std::string_view after) {
  if (text.starts_with(before)) text.remove_prefix(before.size());
  if (text.starts_with(' ')) text.remove_prefix(1);
  if (text.ends_with(after)) text.remove_suffix(after.size());
  return text;
}

}  // namespace

BoxesContents replay_boxes(std::string_view prompt, const BoxesRules& rules,
                           const Vocabulary& vocabulary) {
  std::string_view rest = without(prompt, boxes_begin, boxes_answer);
  Replay replay(rules, vocabulary);
  replay.begin(next_sentence("sentence 1", rest));
  int count = 0;
  while (!rest.empty()) {
    LONGHAND_CHECK(++count <= rules.operations, "expected at most ", rules.operations,
                   " operations, got more");
    const std::string where = text("operation ", count);
    replay.operate(where, next_sentence(where, rest));
  }
  const bool fixed = rules.length == BoxesRules::Length::fixed;
  LONGHAND_CHECK(fixed ? count == rules.operations : count > 0, "expected ",
                 fixed ? text(rules.operations, " operations") : "at least 1 operation", ", got ",
                 count);
  return replay.finish();
}

std::string describe_boxes(const BoxesContents& contents, const BoxesRules& rules) {
  std::string sentence;
  for (const auto& [box, items] : contents) {
    if (items.empty() && rules.advanced) continue;
    sentence += (sentence.empty() ? "Box " : ", Box ") + std::string(1, box) +
                (items.empty() ? " is empty" : " contains " + list_of(items));
  }
  return sentence + '.';
}

void check_boxes_answer(std::string_view answer, const BoxesContents& contents,
                        const BoxesRules& rules, const Vocabulary& vocabulary) {
  const std::string where = "answer";
  const std::string_view given = without(answer, "", boxes_end);
  std::string_view rest = given;
  const std::string_view sentence = next_sentence(where, rest);
  LONGHAND_CHECK(rest.empty(), where, ": expected one sentence, got more");
  BoxesContents said;
  for (const std::string_view clause : split(sentence, ", ")) {
    LONGHAND_CHECK(said.size() < contents.size(), where, ": expected at most ", contents.size(),
                   " boxes, got more");
    Words words(where, clause, rules, vocabulary);
    const char box = words.box();
    words.require(said.empty() || said.rbegin()->first < box,
                  "expected boxes in alphabetical order, got Box ", box, " after Box ",
                  said.empty() ? box : said.rbegin()->first);
    if (rules.advanced || !words.accept("is empty")) {
      words.expect("contains");
      for (std::string& item : words.list()) said[box].insert(std::move(item));
    } else {
      said[box];
    }
    words.finish();
  }
  for (const auto& [box, held] : contents) {
    const auto place = said.find(box);
    LONGHAND_CHECK(place != said.end() || (rules.advanced && held.empty()), where,
                   ": no clause mentions Box ", box, ", which holds ", list_of(held));
    LONGHAND_CHECK(place == said.end() || place->second == held, where, ": Box ", box,
                   ": expected ", list_of(held), ", got ", list_of(place->second));
  }
  const std::string expected = describe_boxes(contents, rules);
  LONGHAND_CHECK(given == expected, where, ": expected ", quote(expected), ", got ", quote(given));
}

}  // namespace longhand::tasks
