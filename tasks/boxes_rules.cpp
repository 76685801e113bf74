#include "tasks/boxes_rules.h"

#include <algorithm>

#include "core/error.h"

namespace longhand::tasks {
namespace {

/// The names of the objects of Kim and Schuster 2023, in order of word frequency.
constexpr std::string_view object_words[] = {
    "book",       "car",      "paper",    "letter",   "game",   "computer",  "picture", "plant",
    "cup",        "machine",  "bill",     "glass",    "note",   "stone",     "fish",    "drug",
    "television", "card",     "document", "rock",     "radio",  "ball",      "tea",     "file",
    "newspaper",  "branch",   "train",    "cash",     "fig",    "flower",    "bag",     "boat",
    "key",        "painting", "phone",    "drink",    "engine", "bus",       "coffee",  "sheet",
    "plate",      "magazine", "egg",      "tape",     "bottle", "block",     "brain",   "map",
    "crown",      "ring",     "leaf",     "dress",    "fan",    "milk",      "ticket",  "shoe",
    "bone",       "gift",     "cross",    "plane",    "mirror", "coat",      "wheel",   "string",
    "ice",        "rose",     "boot",     "hat",      "suit",   "creature",  "bomb",    "camera",
    "bread",      "cake",     "meat",     "beer",     "shirt",  "cigarette", "jacket",  "apple",
    "pipe",       "guitar",   "disk",     "medicine", "knife",  "cream",     "clock",   "chemical",
    "seed",       "tie",      "watch",    "cheese",   "bowl",   "dish",      "shell",   "wire",
    "tissue",     "pot",      "brick",    "bell"};
static_assert(std::size(object_words) == 100);

/// Reads an option whose first choice is `version`. The other choices stand for the values of T, in
/// their order. The choice `version` stands for `otherwise`, which must be the default of the
/// task's version (default or advanced).
template <class T>
T choice_or(const OptionValues& options, std::string_view name,
            std::initializer_list<std::string_view> choices, T otherwise) {
  const std::size_t place = options.choice(name, choices);  // 0 stands for the choice `version`
  return place == 0 ? otherwise : static_cast<T>(place - 1);
}

int integer_or(const OptionValues& options, std::string_view name, int least, int most,
               int otherwise) {
  if (options.integer(name, 0, most) == 0) return otherwise;
  return static_cast<int>(options.integer(name, least, most));
}

}  // namespace

std::vector<TaskOption> BoxesRules::options() {
  return {
      {"version", "default",
       "rules: default or advanced; advanced: half of the boxes are occupied, and a move takes all "
       "objects of a box"},
      {"boxes", "0", "number of boxes, 2 to 26; 0: 7, or 8 in the advanced version"},
      {"objects", "100", "number of different objects; these are the X most frequent of 100 words"},
      {"most-items", "0", "maximum number of objects in a box; 0: 3, or 2 in the advanced version"},
      {"operations", "0",
       "number of operations, or their maximum for log-uniform --task.lengths; 0: 32, or 31 in the "
       "advanced version"},
      {"lengths", "version",
       "distribution of the number of operations: fixed, log-uniform (at least 1, rounded down) or "
       "log-uniform-rounded (to the nearest integer); version: fixed, or log-uniform in the "
       "advanced version"},
      {"occupied", "version",
       "number of occupied boxes: any; start (half initially, then any); at-most (half initially, "
       "never more); exactly (always half); version: any, or exactly in the advanced version"},
      {"start-items", "version",
       "initial number of objects in a box: poisson (mean 2, at most --task.most-items) or one; "
       "version: poisson, or one in the advanced version"},
      {"clauses", "version",
       "order of the boxes in the first sentence: shuffled or ascending; version: shuffled, or "
       "ascending in the advanced version"},
      {"kinds", "proposed",
       "how operations are drawn: proposed (draw kind and boxes until the operation is possible) "
       "or feasible (draw only among the possible kinds)"},
      {"put-items", "poisson",
       "number of objects per put operation: poisson (mean 1, at least 1) or one"},
      {"loss", "answer", "tokens that contribute to the loss: answer (including its end) or all"},
      {"split", "train",
       "part of the initial states: train (15 of 16), test (the rest) or all; no state is in both "
       "train and test"}};
}

BoxesRules::BoxesRules(const OptionValues& o)
    : advanced(o.choice("version", {"default", "advanced"}) == 1) {
  boxes = integer_or(o, "boxes", 2, 26, advanced ? 8 : 7);
  most_items = integer_or(o, "most-items", 1, 9, advanced ? 2 : 3);
  operations = integer_or(o, "operations", 1, 1000, advanced ? 31 : 32);
  objects =
      static_cast<int>(o.integer("objects", 1, static_cast<std::int64_t>(std::size(object_words))));
  LONGHAND_CHECK(objects >= boxes * most_items, "task boxes: option objects: expected at least ",
                 boxes * most_items, " (boxes times most-items), got ", objects);
  length = choice_or(o, "lengths", {"version", "fixed", "log-uniform", "log-uniform-rounded"},
                     advanced ? Length::log_uniform : Length::fixed);
  occupied = choice_or(o, "occupied", {"version", "any", "start", "at-most", "exactly"},
                       advanced ? Occupied::exactly : Occupied::any);
  LONGHAND_CHECK(!advanced || occupied != Occupied::any,
                 "task boxes: option occupied: expected \"start\", \"at-most\" or \"exactly\", "
                 "because option \"version\" is \"advanced\", got \"any\"");
  one_at_start = choice_or(o, "start-items", {"version", "poisson", "one"}, advanced);
  shuffled = choice_or(o, "clauses", {"version", "ascending", "shuffled"}, !advanced);
  feasible_kinds = o.choice("kinds", {"proposed", "feasible"}) == 1;
  one_put = o.choice("put-items", {"poisson", "one"}) == 1;
  split = static_cast<Split>(o.choice("split", {"train", "test", "all"}));
}

// A list of k objects, such as "the x and the y", has 3k - 1 tokens.
std::int64_t BoxesRules::longest_prompt() const {
  // A clause of the first sentence is "the x and the y are in Box L," or "there is nothing in Box
  // L,".
  const int clause = std::max(7, 3 * (one_at_start ? 1 : most_items) + 4);
  const int clauses = occupied == Occupied::any || !advanced ? boxes : half();
  // A sentence that describes an operation has one of four forms. k is the number of objects that
  // it names (here two, x and y):
  //   "Move the contents of Box A to Box B." has 10 tokens;
  //   "Put the x and the y into Box A." has 3k + 4 tokens;
  //   "Remove the x and the y from Box A." has 3k + 4 tokens;
  //   "Move the x and the y from Box A to Box B." has 3k + 7 tokens.
  // The last form occurs only in the version `default`. It leaves at least one object in Box A, so
  // its k is at most most_items - 1. The sentence then has at most 3 most_items + 4 tokens, as many
  // as the longest sentence of the second form.
  // `named` is the maximum k of the second and the third form. It is most_items - 1 if the number
  // of occupied boxes must not change: Box A then contains an object before the second form, and
  // still contains one after the third form. Otherwise, `named` is most_items.
  const int named = advanced && occupied == Occupied::exactly ? most_items - 1 : most_items;
  return clauses * clause + std::int64_t{operations} * std::max(10, 3 * named + 4);
}

std::int64_t BoxesRules::longest_answer() const {
  const bool some = advanced && (occupied == Occupied::exactly || occupied == Occupied::at_most);
  return (some ? half() : boxes) * (3 * most_items + 3);
}

std::vector<std::string_view> boxes_objects(int count) {
  std::vector<std::string_view> objects(std::begin(object_words), std::begin(object_words) + count);
  std::ranges::sort(objects);
  return objects;
}

WordVocabulary boxes_vocabulary(const BoxesRules& rules) {
  std::vector<std::string> texts{std::string(boxes_begin), std::string(boxes_answer),
                                 std::string(boxes_end), ",", "."};
  const auto add = [&](std::initializer_list<std::string_view> list) {
    for (const std::string_view word : list) texts.push_back(" " + std::string(word));
  };
  add({"The", "Move", "Put", "Remove", "Box", "the", "is", "in", "and", "from", "to", "into",
       "contents", "of", "contains"});
  if (!rules.advanced) add({"There", "there", "nothing", "empty"});
  if (!rules.one_at_start) add({"are"});
  for (int box = 0; box < rules.boxes; ++box) texts.push_back({' ', static_cast<char>('A' + box)});
  for (const std::string_view object : boxes_objects(rules.objects)) add({object});
  return WordVocabulary(std::move(texts));
}

}  // namespace longhand::tasks
