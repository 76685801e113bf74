#include "tasks/cycle_tracing.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/error.h"
#include "core/quote.h"

namespace longhand::tasks {
namespace {

constexpr std::int64_t ids = 1000;

std::string three_digits(std::int64_t id) {
  std::string digits = std::to_string(1000 + id);
  return digits.substr(1);
}

WordVocabulary make_vocabulary(bool numbers) {
  std::vector<std::string> texts{"E", "C", " ", ","};
  for (std::int64_t id = 0; id < (numbers ? ids : 10); ++id) {
    texts.push_back(numbers ? three_digits(id) : std::to_string(id));
  }
  return WordVocabulary(std::move(texts));
}

/// Cuts a text at every space. Adjacent spaces give empty words.
std::vector<std::string_view> cut_at_spaces(std::string_view text) {
  std::vector<std::string_view> words;
  for (;;) {
    const std::size_t space = text.find(' ');
    words.push_back(text.substr(0, space));
    if (space == text.npos) return words;
    text.remove_prefix(space + 1);
  }
}

bool is_node(std::string_view word) {
  return word.size() == 3 && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

/// A parsed prompt: the successor of each node, and the start node.
struct Graph {
  std::map<std::string_view, std::string_view> next;
  std::string_view start;
};

/// Parses a prompt. If the prompt is not valid, sets `wrong` to a description of the mistake.
Graph read_prompt(std::string_view prompt, std::string& wrong) {
  Graph graph;
  const std::vector<std::string_view> words = cut_at_spaces(prompt);
  const std::size_t count = words.size();
  if (count < 4 || words.front() != "E" || words[count - 2] != "C" || !is_node(words.back())) {
    wrong = "expected a prompt E a,b b,c ... C a, got " + quote(prompt);
    return graph;
  }
  for (std::size_t i = 1; i + 2 < count; ++i) {
    const std::string_view edge = words[i];
    if (edge.size() != 7 || edge[3] != ',' || !is_node(edge.substr(0, 3)) ||
        !is_node(edge.substr(4))) {
      wrong = text("edge ", i, ": expected two numbers of three digits, got ", quote(edge));
      return graph;
    }
    if (!graph.next.emplace(edge.substr(0, 3), edge.substr(4)).second) {
      wrong = text("edge ", i, ": expected only one edge from ", edge.substr(0, 3),
                   ", got a second one");
      return graph;
    }
  }
  graph.start = words.back();
  std::string_view node = graph.start;
  for (std::size_t steps = 0; steps < graph.next.size(); ++steps) {
    const auto edge = graph.next.find(node);
    if (edge == graph.next.end() || (steps > 0 && node == graph.start)) {
      wrong = text("the edges are not one cycle through ", graph.start);
      return graph;
    }
    node = edge->second;
  }
  if (node != graph.start) wrong = text("the edges are not one cycle through ", graph.start);
  return graph;
}

class CycleTracing final : public Task {
 public:
  explicit CycleTracing(const OptionValues& options)
      : least_(options.integer("min-nodes", 1, ids)),
        most_(options.integer("max-nodes", least_, ids)),
        width_(options.choice("tokenization", {"characters", "numbers"}) == 0 ? 3 : 1),
        every_token_(options.choice("loss", {"answer", "all"}) == 1),
        vocabulary_(make_vocabulary(width_ == 1)) {
    const std::int64_t least_budget = prompt_length(most_) + 1 + width_;
    budget_ = options.integer("tokens", 0, 1 << 24);
    if (budget_ == 0) budget_ = prompt_length(most_) + (most_ + most_ / 4 + 1) * (1 + width_);
    LONGHAND_CHECK(budget_ >= least_budget, "task cycle-tracing: option tokens: expected at least ",
                   least_budget, " for ", most_, " nodes, got ", budget_);
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  std::int64_t longest() const override { return budget_; }
  std::string_view main_metric() const override { return "transitions"; }

  Sample sample(Rng& rng, int) const override {
    const std::int64_t count = least_ + rng.below(static_cast<std::uint32_t>(most_ - least_ + 1));
    std::vector<std::int64_t> cycle(static_cast<std::size_t>(ids));
    std::iota(cycle.begin(), cycle.end(), 0);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      std::swap(cycle[i], cycle[i + rng.below(static_cast<std::uint32_t>(cycle.size() - i))]);
    }
    cycle.resize(static_cast<std::size_t>(count));
    std::vector<std::size_t> edges(cycle.size());
    std::iota(edges.begin(), edges.end(), 0);
    rng.shuffle(edges.begin(), edges.end());

    std::string written = "E ";
    for (const std::size_t from : edges) {
      written +=
          three_digits(cycle[from]) + ',' + three_digits(cycle[(from + 1) % cycle.size()]) + ' ';
    }
    std::size_t at = rng.below(static_cast<std::uint32_t>(count));
    written += "C " + three_digits(cycle[at]);
    for (std::int64_t length = prompt_length(count) + 1 + width_; length <= budget_;
         length += 1 + width_) {
      at = (at + 1) % cycle.size();
      written += ' ' + three_digits(cycle[at]);
    }

    Sample sample{.tokens = vocabulary_.encode(written), .targets = {}};
    const std::int64_t given = prompt_length(count);
    sample.targets.assign(sample.tokens.size(), Sample::not_counted);
    for (std::size_t i = 0; i + 1 < sample.tokens.size(); ++i) {
      const bool is_answer = static_cast<std::int64_t>(i) + 1 >= given;
      if (is_answer) sample.asked.push_back(static_cast<std::int32_t>(i));
      if (is_answer || every_token_) sample.targets[i] = sample.tokens[i + 1];
    }
    return sample;
  }

  /// `nodes`: accuracy of all nodes. `transitions`: accuracy of the nodes up to and including the
  /// first wrong node. `sequences`: share of answers without a mistake. A node is right if its
  /// space and all its digits are right.
  void score(const Sample& sample, std::span<const std::int32_t> said,
             Tally& tally) const override {
    (void)count_right(sample, said);  // checks the size of `said`
    const auto step = static_cast<std::size_t>(1 + width_);
    std::int64_t total = 0;
    std::int64_t right = 0;
    std::int64_t unbroken = 0;
    for (std::size_t i = 0; i + step <= said.size(); i += step, ++total) {
      const bool is_right = std::equal(said.begin() + static_cast<std::ptrdiff_t>(i),
                                       said.begin() + static_cast<std::ptrdiff_t>(i + step),
                                       sample.targets.begin() + sample.asked[i]);
      right += is_right;
      unbroken += is_right && unbroken == total;
    }
    tally.add_share("transitions", unbroken, std::min(unbroken + 1, total));
    tally.add_share("nodes", right, total);
    tally.add_share("sequences", unbroken == total, 1);
  }

  /// To predict a digit of the next node, a model must attend to the same digit in the prompt, in
  /// the edge from the current node to the next.
  std::vector<ReferenceRow> reference(const Sample& sample) const override {
    const auto node_at = [&](std::int32_t token) {
      return vocabulary_.decode(
          std::span(sample.tokens)
              .subspan(static_cast<std::size_t>(token), static_cast<std::size_t>(width_)));
    };
    const auto width = static_cast<std::int32_t>(width_);
    const std::int32_t given = sample.asked.front() + 1;
    // For each node, the index of the prompt token at which the node's successor starts.
    std::map<std::string, std::int32_t> target_of;
    for (std::int32_t edge = 2; edge + 2 + width < given; edge += 2 * width + 2) {
      target_of[node_at(edge)] = edge + width + 1;
    }
    std::vector<ReferenceRow> rows;
    for (std::int32_t node = given + 1; node < static_cast<std::int32_t>(sample.tokens.size());
         node += 1 + width) {
      const std::int32_t target = target_of.at(node_at(node - 1 - width));
      for (std::int32_t digit = 0; digit < width; ++digit) {
        rows.push_back({node - 1 + digit, {target + digit}});
      }
    }
    return rows;
  }

  /// The nodes of one complete cycle, each with a space before it.
  std::string answer(std::string_view prompt, int) const override {
    std::string wrong;
    const Graph graph = read_prompt(prompt, wrong);
    LONGHAND_CHECK(wrong.empty(), "cycle-tracing: ", wrong);
    std::string walk;
    std::string_view node = graph.start;
    for (std::size_t i = 0; i < graph.next.size(); ++i) {
      node = graph.next.at(node);
      walk += ' ';
      walk += node;
    }
    return walk;
  }

  /// The answer may have any length, and there need not be a space between prompt and answer.
  std::optional<std::string> check(std::string_view prompt, std::string_view answer,
                                   int) const override {
    std::string wrong;
    const Graph graph = read_prompt(prompt, wrong);
    if (!wrong.empty()) return wrong;
    if (answer.starts_with(' ')) answer.remove_prefix(1);
    std::string_view node = graph.start;
    std::size_t place = 0;
    for (const std::string_view said : cut_at_spaces(answer)) {
      node = graph.next.at(node);
      ++place;
      if (said != node) return text("node ", place, ": expected ", node, ", got ", quote(said));
    }
    return std::nullopt;
  }

 private:
  /// Number of tokens of a prompt "E aaa,bbb bbb,ccc ... C aaa" with `count` edges.
  std::int64_t prompt_length(std::int64_t count) const {
    return 2 + count * (2 * width_ + 2) + 2 + width_;
  }

  std::int64_t least_, most_;
  std::int64_t width_;  // number of tokens per node
  bool every_token_;
  WordVocabulary vocabulary_;
  std::int64_t budget_ = 0;
};

/// A test distribution: cycles with `factor` times as many nodes and tokens as the longest cycle in
/// training.
Distribution larger(std::int64_t factor) {
  return {text(factor, "x"), [factor](OptionValues& values) {
            const std::string nodes = text(factor * values.integer("max-nodes", 1, ids / factor));
            values.set("min-nodes", nodes);
            values.set("max-nodes", nodes);
            values.set("tokens", text(factor * values.integer("tokens", 0, (1 << 24) / factor)));
          }};
}

}  // namespace

TaskKind cycle_tracing() {
  return {.name = "cycle-tracing",
          .summary = "walk along a directed cycle whose edges are listed in random order",
          .options = {{"min-nodes", "10", "minimum number of nodes in a cycle"},
                      {"max-nodes", "50",
                       "maximum number of nodes in a cycle; sizes are drawn uniformly"},
                      {"tokens", "0",
                       "maximum number of tokens per sample, including the prompt; 0: enough for a "
                       "walk of 1.25 times the largest cycle"},
                      {"tokenization", "characters",
                       "tokens: characters or numbers; numbers: one token per node"},
                      {"loss", "answer",
                       "tokens that contribute to the loss: answer (the walk) or all"}},
          .distributions = {{"train", [](OptionValues&) {}}, larger(4), larger(8)},
          .make_with = [](const OptionValues& values) {
            return std::make_unique<CycleTracing>(values);
          }};
}

}  // namespace longhand::tasks
