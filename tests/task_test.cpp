// Tests properties that every task must have with every distribution.
#include "tasks/task.h"

#include <fstream>
#include <functional>
#include <set>
#include "tests/check.h"

#include "core/error.h"
#include "tests/paths.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

BOOST_AUTO_TEST_SUITE(task_test)

using namespace longhand;
using namespace longhand::tasks;

namespace {

struct Case {
  std::string name;
  std::unique_ptr<Task> task;
};

/// A file of records for the task `files`. Each answer contains every letter of the prompt twice.
std::string own_file() {
  static const TemporaryFolder folder;
  const std::string path = (folder / "train.jsonl").string();
  std::ofstream file(path);
  for (char a = 'a'; a <= 'h'; ++a) {
    for (char b = 'a'; b <= 'h'; ++b) {
      file << R"({"prompt": ")" << a << b << R"(=", "answer": ")" << a << a << b << b
           << R"(", "pairs": [[3, 0], [4, 0], [5, 1], [6, 1]]})" << '\n';
    }
  }
  return path;
}

/// Sets of options for tasks of this kind. Together they contain every choice of every option that
/// has a list of choices.
std::vector<OptionValues> variants_of(const TaskKind& kind) {
  std::vector<OptionValues> variants{kind.defaults()};
  // The task `text` can read any file as bytes. Here the file is the executable longhand.
  if (kind.name == "text") variants.front().set("text", built_program);
  if (kind.name == "files") {
    variants.front().set("files", own_file());
    variants.front().set("held_out", "0.5");
    kind.complete(variants.front());
  } else if (kind.name == "flip-flop") {
    variants.front().set("instructions", "64");
    variants.push_back(variants.front());
    variants.back().set("loss", "all");
  } else if (kind.name == "words") {
    variants.front().set("max", "40");
    variants.push_back(variants.front());
    for (const auto& [option, value] :
         {std::pair{"group", "z7"}, {"min", "3"}, {"asked", "last"}}) {
      variants.back().set(option, value);
    }
  } else if (kind.name == "recall") {
    variants.push_back(variants.front());
    for (const auto& [option, value] :
         {std::pair{"pairs", "8"}, {"vocabulary", "400"}, {"repeats", "3"}, {"back", "2"}}) {
      variants.back().set(option, value);
    }
  } else if (kind.name == "copying") {
    variants.push_back(variants.front());
    for (const auto& [option, value] : {std::pair{"data", "0"}, {"noise", "3-20"}}) {
      variants.back().set(option, value);
    }
  } else if (kind.name == "cycle-tracing") {
    for (const auto& [option, value] :
         {std::pair{"tokenization", "numbers"}, {"loss", "all"}, {"tokens", "700"}}) {
      variants.push_back(kind.defaults());
      variants.back().set(option, value);
    }
  } else if (kind.name == "sorting") {
    variants.front().set("hint", "all");
    variants.push_back(variants.front());
    variants.back().set("repetition", "1");
  } else if (kind.name == "increment") {
    variants.front().set("hint", "carry");
    variants.push_back(variants.front());
    variants.back().set("nines", "1");
  } else if (kind.name == "addition" || kind.name == "multiplication") {
    variants.push_back(kind.defaults());
    variants.back().set("pad", "0");
  } else if (kind.name == "boxes") {
    for (const auto& [option, value] : {std::pair{"version", "advanced"}, {"loss", "all"}}) {
      variants.push_back(kind.defaults());
      variants.back().set(option, value);
    }
  }
  return variants;
}

/// All combinations of a task, a distribution and a set of options from variants_of().
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const TaskKind& kind : all_tasks()) {
    const std::vector<OptionValues> variants = variants_of(kind);
    for (std::size_t i = 0; i < variants.size(); ++i) {
      for (const Distribution& distribution : kind.distributions_of(variants[i])) {
        cases.push_back({text(kind.name, ' ', i, ' ', distribution.name),
                         kind.make(variants[i], distribution.name)});
      }
    }
  }
  return cases;
}

/// Runs body(case, sample) on some samples of every case.
void for_cases(const std::function<void(const Case&, const Sample&)>& body) {
  for (const Case& it : all_cases()) {
    BOOST_TEST_CONTEXT(it.name) {
      for (int head = 0; head < it.task->heads(); ++head) {
        for (std::uint32_t index = 0; index < 20; ++index) {
          Rng rng(1, Purpose::test, 0, index);
          body(it, it.task->sample(rng, head));
        }
      }
    }
  }
}
void for_samples(const std::function<void(const Task&, const Sample&)>& body) {
  for_cases([&](const Case& it, const Sample& sample) { body(*it.task, sample); });
}

/// True if an answer may contain tokens that do not occur before it.
bool makes_something_new(const Case& it) {
  for (const char* name : {"increment", "addition", "multiplication", "ffml", "successor"}) {
    if (it.name.starts_with(name)) return true;
  }
  return false;
}

std::vector<std::int32_t> right_answers(const Sample& sample) {
  std::vector<std::int32_t> said;
  for (const std::int32_t output : sample.asked) {
    said.push_back(sample.targets[static_cast<std::size_t>(output)]);
  }
  return said;
}

}  // namespace

BOOST_AUTO_TEST_CASE(samples_are_well_formed) {
  for_samples([](const Task& task, const Sample& sample) {
    const Outputs outputs = task.outputs();
    const auto tokens = static_cast<std::int64_t>(sample.tokens.size());
    BOOST_TEST(tokens > 0);
    BOOST_TEST(tokens <= task.longest());
    BOOST_TEST(static_cast<std::int64_t>(sample.targets.size()) == tokens * outputs.groups);
    BOOST_TEST((sample.weights.empty() || sample.weights.size() == sample.targets.size()));
    for (const std::int32_t token : sample.tokens) {
      BOOST_REQUIRE(token >= 0);
      BOOST_REQUIRE(token < task.vocabulary().size());
    }
    for (std::size_t i = 0; i < sample.targets.size(); ++i) {
      const std::int32_t target = sample.targets[i];
      BOOST_REQUIRE(target >= Sample::not_counted);
      BOOST_REQUIRE(target < outputs.classes);
      if (outputs.says_next && target >= 0) BOOST_REQUIRE(target == sample.tokens.at(i + 1));
    }
    std::int32_t previous = -1;
    for (const std::int32_t output : sample.asked) {
      BOOST_REQUIRE(output > previous);
      BOOST_REQUIRE(sample.targets.at(static_cast<std::size_t>(output)) >= 0);
      previous = output;
    }
  });
}

BOOST_AUTO_TEST_CASE(a_sample_is_a_function_of_its_stream) {
  for (const Case& it : all_cases()) {
    std::set<std::vector<std::int32_t>> seen;
    for (std::uint32_t index = 0; index < 10; ++index) {
      Rng first(1, Purpose::test, 7, index);
      Rng second(1, Purpose::test, 7, index);
      const Sample sample = it.task->sample(first, 0);
      BOOST_TEST(sample.tokens == it.task->sample(second, 0).tokens);
      seen.insert(sample.tokens);
    }
    // Only a few distinct samples are required, because short samples coincide by chance.
    BOOST_TEST(seen.size() > 5u, it.name << " repeats itself");
  }
}

BOOST_AUTO_TEST_CASE(right_answers_score_one_and_wrong_answers_less) {
  for_samples([](const Task& task, const Sample& sample) {
    if (sample.asked.empty()) return;
    std::vector<std::int32_t> said = right_answers(sample);
    Tally right;
    task.score(sample, said, right);
    for (const Metric& metric : right.metrics()) {
      if (metric.is_share) BOOST_TEST(metric.sum == static_cast<double>(metric.count));
    }
    BOOST_TEST(right.at(task.main_metric()).count > 0);

    const auto classes = static_cast<std::int32_t>(task.outputs().classes);
    said.back() = (said.back() + 1) % classes;
    Tally wrong;
    task.score(sample, said, wrong);
    BOOST_TEST(wrong.at(task.main_metric()).mean() < 1);
    said.pop_back();
    BOOST_CHECK_THROW(task.score(sample, said, wrong), Error);
  });
}

BOOST_AUTO_TEST_CASE(text_is_the_tokens_and_passes_the_check) {
  for_samples([](const Task& task, const Sample& sample) {
    const auto [prompt, answer] = task.as_text(sample);
    const bool apart = !task.outputs().says_next;  // the answer consists of labels, not tokens
    BOOST_TEST(task.vocabulary().encode(apart ? prompt : prompt + answer) == sample.tokens);
    BOOST_TEST(!task.check(prompt, answer, sample.head).has_value());
    BOOST_TEST(answer.empty() == sample.asked.empty());
  });
}

BOOST_AUTO_TEST_CASE(the_check_and_the_reference_answer_agree) {
  for_samples([](const Task& task, const Sample& sample) {
    if (sample.asked.empty()) return;
    const auto [prompt, answer] = task.as_text(sample);
    const std::string reference = task.answer(prompt, sample.head);
    BOOST_TEST(!reference.empty());
    BOOST_TEST(!task.check(prompt, reference, sample.head).has_value());
    const std::size_t shared = std::min(reference.size(), answer.size());
    BOOST_TEST(reference.substr(0, shared) == answer.substr(0, shared));
  });
}

BOOST_AUTO_TEST_CASE(the_check_refuses_a_changed_answer) {
  for_samples([](const Task& task, const Sample& sample) {
    if (sample.asked.empty()) return;
    if (!task.outputs().says_next) {
      const auto classes = static_cast<std::int32_t>(task.outputs().classes);
      for (std::size_t i = 0; i < sample.asked.size(); i += 1 + sample.asked.size() / 10) {
        Sample changed = sample;
        std::int32_t& target = changed.targets.at(static_cast<std::size_t>(sample.asked[i]));
        target = (target + 1) % classes;
        const auto [prompt, answer] = task.as_text(changed);
        BOOST_TEST(task.check(prompt, answer, sample.head).has_value());
      }
      return;
    }
    const std::size_t given = task.vocabulary().encode(task.as_text(sample).first).size();
    for (std::size_t i = 0; i < sample.asked.size(); i += 1 + sample.asked.size() / 10) {
      std::vector<std::int32_t> changed = sample.tokens;
      std::int32_t& token = changed.at(static_cast<std::size_t>(sample.asked[i]) + 1);
      token = (token + 1) % task.vocabulary().size();
      const std::string whole = task.vocabulary().decode(changed);
      const std::string prompt = task.vocabulary().decode(std::span(changed).first(given));
      BOOST_TEST(task.check(prompt, whole.substr(prompt.size()), sample.head).has_value());
    }
  });
}

BOOST_AUTO_TEST_CASE(reference_attention_looks_back_at_tokens_that_hold_the_answer) {
  for_cases([](const Case& it, const Sample& sample) {
    const Task& task = *it.task;
    std::int32_t previous = -1;
    for (const ReferenceRow& row : task.reference(sample)) {
      BOOST_REQUIRE(row.row > previous);
      BOOST_REQUIRE(!row.columns.empty());
      for (const std::int32_t column : row.columns) {
        BOOST_REQUIRE(column >= 0);
        BOOST_REQUIRE(column <= row.row);
      }
      previous = row.row;
      if (task.outputs().groups == 1 && !makes_something_new(it)) {  // answers copy earlier tokens
        BOOST_REQUIRE(std::ranges::any_of(row.columns, [&](std::int32_t column) {
          return sample.tokens.at(static_cast<std::size_t>(column)) ==
                 sample.targets.at(static_cast<std::size_t>(row.row));
        }));
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(a_distribution_changes_neither_vocabulary_nor_outputs) {
  for (const TaskKind& kind : all_tasks()) {
    const auto training = kind.make(kind.defaults());
    for (const Distribution& distribution : kind.distributions) {
      const auto task = kind.make(kind.defaults(), distribution.name);
      BOOST_REQUIRE(task->vocabulary().size() == training->vocabulary().size());
      for (std::int32_t token = 0; token < task->vocabulary().size(); ++token) {
        BOOST_REQUIRE(task->vocabulary().text(token) == training->vocabulary().text(token));
      }
      BOOST_TEST(task->outputs().groups == training->outputs().groups);
      BOOST_TEST(task->heads() == training->heads());
    }
  }
}

BOOST_AUTO_TEST_CASE(unknown_names_are_refused) {
  const std::string unknown = refusal([] { task_kind("flipflop"); });
  BOOST_TEST(unknown.starts_with("expected one of the tasks flip-flop, cycle-tracing"), unknown);
  BOOST_TEST(unknown.ends_with(", got \"flipflop\"; did you mean flip-flop?"), unknown);
  const TaskKind& kind = task_kind("flip-flop");
  BOOST_TEST(refusal([&] { kind.make(kind.defaults(), "16x"); }) ==
             "task flip-flop: expected one of the distributions train, sparse, 2x, 4x, drift, got "
             "\"16x\"");
  OptionValues values = kind.defaults();
  BOOST_TEST(
      refusal([&] { values.set("length", "5"); }) ==
      "task flip-flop: expected one of the options instructions, ignore, loss or letters, got "
      "\"length\"");
  const auto refused = [&](const std::string& option, const std::string& value,
                           const std::string& message) {
    OptionValues changed = kind.defaults();
    changed.set(option, value);
    BOOST_TEST(refusal([&] { kind.make(changed); }) ==
               "task flip-flop: option " + option + ": expected " + message);
  };
  refused("instructions", "0", "a whole number from 1 to 1048576, got \"0\"");
  refused("instructions", "5x", "a whole number from 1 to 1048576, got \"5x\"");
  refused("instructions", "", "a whole number from 1 to 1048576, got \"\"");
  refused("ignore", "1.5", "a number from 0 to 1, got \"1.5\"");
  refused("ignore", "nan", "a number from 0 to 1, got \"nan\"");
  refused("loss", "read", "reads or all, got \"read\"");
}

// A distribution changes some options. Error messages must not present the changed values as the
// user's.
BOOST_AUTO_TEST_CASE(an_option_that_a_distribution_cannot_have_names_the_distribution) {
  const TaskKind& kind = task_kind("cycle-tracing");
  OptionValues values = kind.defaults();
  values.set("max-nodes", "200");
  const std::string message =
      "task cycle-tracing: option max-nodes: expected a whole number from 1 to 125, got \"200\"";
  BOOST_TEST(refusal([&] { kind.make(values, "8x"); }) == message + " (distribution 8x)");
  values.set("max-nodes", "many");
  const std::string plain = refusal([&] { kind.make(values, "train"); });
  BOOST_TEST(plain.ends_with("got \"many\""), plain);
  BOOST_TEST(refusal([&] { kind.make(values); }) == plain);
}

BOOST_AUTO_TEST_SUITE_END()
