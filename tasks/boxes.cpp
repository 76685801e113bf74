#include "tasks/boxes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "core/error.h"
#include "tasks/boxes_check.h"
#include "tasks/boxes_world.h"

namespace longhand::tasks {
namespace {

/// Writes sentences as tokens.
class Writer {
 public:
  Writer(const BoxesRules& rules, const Vocabulary& vocabulary)
      : vocabulary_(vocabulary),
        box_(vocabulary.at(" A")),
        object_(vocabulary.size() - rules.objects) {}

  /// Appends the tokens of `words`, a text with a space between words.
  void say(std::string_view words) {
    for (std::size_t space = 0; space != words.npos;) {
      space = words.find(' ');
      tokens.push_back(vocabulary_.at(" " + std::string(words.substr(0, space))));
      if (space != words.npos) words.remove_prefix(space + 1);
    }
  }
  void mark(std::string_view text) { tokens.push_back(vocabulary_.at(text)); }
  void box(int box) {
    say("Box");
    tokens.push_back(box_ + box);
  }
  void list(const std::vector<int>& items) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      say(i == 0 ? "the" : "and the");
      tokens.push_back(object_ + items[i]);
    }
  }

  std::vector<std::int32_t> tokens;

 private:
  const Vocabulary& vocabulary_;
  std::int32_t box_, object_;  // box_: token of Box A; object_: token of the first object
};

class Boxes final : public Task {
 public:
  explicit Boxes(const OptionValues& options)
      : rules_(options),
        every_token_(options.choice("loss", {"answer", "all"}) == 1),
        vocabulary_(boxes_vocabulary(rules_)) {}

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  std::int64_t longest() const override {
    // A sample consists of a prompt, an answer and three special tokens.
    return rules_.longest_prompt() + rules_.longest_answer() + 3;
  }
  std::string_view main_metric() const override { return "exact"; }

  Sample sample(Rng& rng, int) const override {
    Writer writer(rules_, vocabulary_);
    writer.mark(boxes_begin);
    BoxesWorld world(rules_, rng);
    begin(world, rng, writer);
    const int count = boxes_operations(rules_, rng);
    for (int i = 0; i < count; ++i) operate(world.step(rng), writer);
    writer.mark(boxes_answer);
    const std::size_t given = writer.tokens.size();
    conclude(world, writer);
    writer.mark(boxes_end);

    Sample sample{.tokens = std::move(writer.tokens), .targets = {}};
    sample.targets.assign(sample.tokens.size(), Sample::not_counted);
    for (std::size_t i = 0; i + 1 < sample.tokens.size(); ++i) {
      const bool is_answer = i + 1 >= given;
      if (is_answer) sample.asked.push_back(static_cast<std::int32_t>(i));
      if (is_answer || every_token_) sample.targets[i] = sample.tokens[i + 1];
    }
    return sample;
  }

  /// `exact`: share of answers in which all tokens are right, including the end token. A model
  /// predicts as many tokens as the right answer has. If its own answer would be longer, the last
  /// of these tokens is not the end token, so the answer is wrong. `exact` is also reported for
  /// each class of depths (see Story) and, if samples differ in their number of operations, for
  /// each class of these numbers (see class_of()). `tokens`: share of right tokens.
  void score(const Sample& sample, std::span<const std::int32_t> said,
             Tally& tally) const override {
    const std::int64_t right = count_right(sample, said);
    const auto total = static_cast<std::int64_t>(said.size());
    const Story story = read(sample);
    tally.add_share("exact", right == total, 1);
    tally.add_share("tokens", right, total);
    tally.add_share("depth " + class_of(std::max(1, story.depth)), right == total, 1);
    if (rules_.length != BoxesRules::Length::fixed) {
      tally.add_share("operations " + class_of(story.operations), right == total, 1);
    }
  }

  /// To predict an object of the answer, a model must attend to the last occurrence of this object
  /// in the prompt.
  std::vector<ReferenceRow> reference(const Sample& sample) const override {
    const std::int32_t first_object = vocabulary_.size() - rules_.objects;
    std::vector<ReferenceRow> rows;
    for (const std::int32_t row : sample.asked) {
      const std::int32_t token = sample.tokens[static_cast<std::size_t>(row) + 1];
      if (token < first_object) continue;
      const auto prompt = std::span(sample.tokens).first(static_cast<std::size_t>(sample.asked[0]));
      const auto last = std::find(prompt.rbegin(), prompt.rend(), token);
      rows.push_back({row, {static_cast<std::int32_t>(prompt.rend() - last) - 1}});
    }
    return rows;
  }

  std::string answer(std::string_view prompt, int) const override {
    try {
      return " " + describe_boxes(replay_boxes(prompt, rules_, vocabulary_), rules_) +
             std::string(boxes_end);
    } catch (const Error& error) {
      fail("boxes: ", error.what());
    }
  }

  std::optional<std::string> check(std::string_view prompt, std::string_view answer,
                                   int) const override {
    try {
      check_boxes_answer(answer, replay_boxes(prompt, rules_, vocabulary_), rules_, vocabulary_);
    } catch (const Error& error) {
      return error.what();
    }
    return std::nullopt;
  }

 private:
  void begin(const BoxesWorld& world, Rng& rng, Writer& writer) const {
    std::vector<int> order(world.boxes().size());
    std::iota(order.begin(), order.end(), 0);
    if (rules_.shuffled) rng.shuffle(order.begin(), order.end());
    bool first = true;
    for (const int box : order) {
      const std::vector<int>& items = world.boxes()[static_cast<std::size_t>(box)];
      if (items.empty() && rules_.advanced) continue;
      if (!first) writer.mark(",");
      const std::size_t start = writer.tokens.size();
      if (items.empty()) {
        writer.say("there is nothing");
      } else {
        writer.list(items);
        writer.say(items.size() == 1 ? "is" : "are");
      }
      if (first) writer.tokens[start] = vocabulary_.at(items.empty() ? " There" : " The");
      writer.say("in");
      writer.box(box);
      first = false;
    }
    writer.mark(".");
  }

  void operate(const BoxesOperation& operation, Writer& writer) const {
    using Kind = BoxesOperation::Kind;
    if (operation.kind == Kind::move && operation.whole) {
      writer.say("Move the contents of");
    } else {
      writer.say(operation.kind == Kind::move     ? "Move"
                 : operation.kind == Kind::remove ? "Remove"
                                                  : "Put");
      writer.list(operation.items);
      writer.say(operation.kind == Kind::put ? "into" : "from");
    }
    writer.box(operation.box);
    if (operation.kind == Kind::move) {
      writer.say("to");
      writer.box(operation.target);
    }
    writer.mark(".");
  }

  void conclude(const BoxesWorld& world, Writer& writer) const {
    bool first = true;
    for (int box = 0; box < rules_.boxes; ++box) {
      const std::vector<int>& items = world.boxes()[static_cast<std::size_t>(box)];
      if (items.empty() && rules_.advanced) continue;
      if (!first) writer.mark(",");
      first = false;
      writer.box(box);
      writer.say(items.empty() ? "is empty" : "contains");
      writer.list(items);
    }
    writer.mark(".");
  }

  /// The number of operations and the depth of a sample. Every box has depth 0 at first, and each
  /// operation on a box increases its depth by 1. After a move, the depth of the target box is 1 +
  /// the larger depth of the two boxes. A box that is emptied by a move has depth 0 again. The
  /// depth of the sample is the largest depth of its non-empty boxes at the end.
  struct Story {
    int operations = 0, depth = 0;
  };
  Story read(const Sample& sample) const {
    const auto is = [&](std::size_t i, std::string_view word) {
      return vocabulary_.text(sample.tokens[i]) == word;
    };
    const auto given = static_cast<std::size_t>(sample.asked.front());
    std::vector<int> depths(static_cast<std::size_t>(rules_.boxes));
    Story story;
    for (std::size_t i = 0; i < sample.tokens.size(); ++i) {
      const bool moves = is(i, " Move");
      if (i < given && (moves || is(i, " Put") || is(i, " Remove"))) {
        ++story.operations;
        const bool whole = moves && is(i + 2, " contents");
        while (!is(i, " Box")) ++i;
        int& depth = depths[box_at(sample, ++i)];
        if (moves) {
          // `i` is now the index of the token A in "Box A to Box B".
          int& target = depths[box_at(sample, i + 3)];
          target = std::max(target, depth) + 1;
        }
        depth = whole ? 0 : depth + 1;
      } else if (i > given && is(i, " contains")) {
        story.depth = std::max(story.depth, depths[box_at(sample, i - 1)]);
      }
    }
    return story;
  }
  std::size_t box_at(const Sample& sample, std::size_t i) const {
    return static_cast<std::size_t>(sample.tokens[i] - vocabulary_.at(" A"));
  }

  /// The class of a depth or of a number of operations, such as "4-7" for 5. A class contains all
  /// numbers with the same count of binary digits, L. The last number of the class is 2^L - 1. This
  /// is the largest depth that a model with L layers can reach.
  static std::string class_of(int number) {
    const int digits = std::bit_width(static_cast<unsigned>(number));
    const int last = (1 << digits) - 1;
    return digits == 1 ? "1" : text(1 << (digits - 1), '-', last);
  }

  BoxesRules rules_;
  bool every_token_;
  WordVocabulary vocabulary_;
};

}  // namespace

TaskKind boxes() {
  return {.name = "boxes",
          .summary = "list the contents of boxes after objects are put in, removed and moved",
          .options = BoxesRules::options(),
          .distributions = {{"train", [](OptionValues& values) { values.set("split", "train"); }},
                            {"test", [](OptionValues& values) { values.set("split", "test"); }}},
          .make_with = [](const OptionValues& values) { return std::make_unique<Boxes>(values); }};
}

}  // namespace longhand::tasks
