// Tests samples of tasks that are encoded for a pretrained model: with the model's tokenizer,
// within a chat template.
#include "tasks/framing.h"

#include "core/atomic_file.h"
#include "core/error.h"
#include "nn/text/encoder.h"
#include "nn/text/tokenizer_json.h"
#include "tasks/character_task.h"
#include "tests/make_task.h"
#include "tests/program.h"
#include "tests/replaced.h"
#include "tests/small_tokenizer.h"

namespace framing_test {

using namespace longhand;
using namespace longhand::tasks;

using Ids = std::vector<std::int32_t>;
using Values = std::vector<std::pair<std::string, std::string>>;

struct Framed : Program {
  Framed() {
    write_atomically(folder / "plain.json", small_tokenizer());
    write_atomically(folder / "begins.json", small_tokenizer_that_begins());
  }

  Values with(const std::string& tokenizer, const std::string& chat,
              const Values& more = {}) const {
    Values values{{"tokenizer", path(tokenizer)}, {"template", chat}};
    values.insert(values.end(), more.begin(), more.end());
    return values;
  }
};

Ids encoded(const std::string& text, bool around = false) {
  static const nn::Tokenizer tokenizer =
      nn::parse_tokenizer_json(small_tokenizer_that_begins(), "begins");
  const auto ids = nn::Encoder(tokenizer).encode(text, {.around = around});
  return {ids.begin(), ids.end()};
}

Ids one_by_one(const std::string& text) {
  Ids ids;
  for (const char c : text) {
    const Ids one = encoded(std::string(1, c));
    BOOST_REQUIRE(one.size() == 1u);
    ids.push_back(one[0]);
  }
  return ids;
}

Ids joined(std::initializer_list<Ids> parts) {
  Ids all;
  for (const Ids& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// The targets of a sample that count in the training loss, in the order of the tokens.
Ids learned(const Sample& sample) {
  Ids all;
  for (const std::int32_t target : sample.targets) {
    if (target != Sample::not_counted) all.push_back(target);
  }
  return all;
}

std::int64_t instruction_of(const Task& task) { return task.instruction_tokens(); }

const std::vector<std::pair<std::string, std::string>> printed{
    {"reversal", "dh13=31hd"},
    {"addition", "12+9=03"},
    {"multiplication", "2100*3000=6300+0000+0000+0000=6300"},
    {"ffml", "w11i11f10r10f10r11"},
    {"value-assignment", "B1A0 AB=01"},
    {"successor", "8 9 10 11 "}};

}  // namespace framing_test

BOOST_FIXTURE_TEST_SUITE(framing_test, Framed)

// Each list of expected tokens is written in the documented order: the text of the template,
// instruction, examples, prompt, template, answer, template.
BOOST_AUTO_TEST_CASE(parts_are_in_the_published_order) {
  const Values told{{"instruction", "Turn it around:\\n"}, {"examples", "ab=ba\\nxyz=zyx"}};
  const Ids instruction = encoded("Turn it around:\n");
  // The instruction is encoded as text, so it has fewer tokens than its 16 characters.
  BOOST_TEST(instruction.size() < 16u);
  const Ids examples = one_by_one("ab=ba\nxyz=zyx\n");
  const Ids prompt = one_by_one("the="), answer = one_by_one("eht");
  // In a text, the tokenizer merges the characters of "the". In a prompt, each character has its
  // own token.
  BOOST_TEST(encoded("the").size() < 3u);
  const auto tokens = [&](const std::string& tokenizer, const std::string& chat) {
    return make_task("reversal", with(tokenizer, chat, told))->sample_of("the=eht").tokens;
  };
  const auto expected = [&](const Ids& before, const std::string& between, const Ids& after) {
    return joined({before, instruction, examples, prompt, encoded(between), answer, after});
  };
  BOOST_TEST(tokens("plain.json", "qwen2") ==
             expected(encoded("<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are "
                              "a helpful assistant.<|im_end|>\n<|im_start|>user\n"),
                      "<|im_end|>\n<|im_start|>assistant\n", encoded("<|im_end|>\n")));
  // The tokens begin with <|begin_of_text|> twice: the tokenizer adds one, and the template
  // contains another.
  const Ids llama = encoded(
      "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: "
      "December 2023\nToday Date: 26 Jul 2024\n\n<|eot_id|><|start_header_id|>user"
      "<|end_header_id|>\n\n",
      true);
  BOOST_TEST(llama[0] == 2);
  BOOST_TEST(llama[1] == 2);
  BOOST_TEST(tokens("begins.json", "llama3.2") ==
             expected(llama, "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
                      encoded("<|eot_id|>")));
  BOOST_TEST(tokens("plain.json", "gemma") == expected(encoded("<bos><start_of_turn>user\n"),
                                                       "<end_of_turn>\n<start_of_turn>model\n",
                                                       encoded("<end_of_turn>\n")));
  // Without a template, the only tokens around a sample are the begin token and the end token.
  std::filesystem::create_directory(folder / "base");
  write_atomically(folder / "base" / "tokenizer.json", small_tokenizer());
  write_atomically(folder / "base" / "tokenizer_config.json",
                   R"({"bos_token": {"content": "<bos>"}, "eos_token": "<|eot_id|>"})");
  BOOST_TEST(tokens("base", "none") == expected({6}, "", {5}));

  // An option sets the date in the chat template.
  const auto dated =
      make_task("reversal", with("begins.json", "llama3.2", {{"date", "1 May 2020"}}));
  const auto undated = make_task("reversal", with("begins.json", "llama3.2"));
  BOOST_TEST((dated->sample_of("a=a").tokens != undated->sample_of("a=a").tokens));
}

BOOST_AUTO_TEST_CASE(the_answer_and_its_end_are_trained_except_for_successor) {
  for (const auto& [name, text] : printed) {
    const auto task = make_task(name, with("plain.json", "qwen2", {{"instruction", "auto"}}));
    const auto bare = make_task(name, {});
    const std::string answer = bare->as_text(bare->sample_of(text)).second;
    const bool ended = name != "successor";
    const Ids end = ended ? encoded("<|im_end|>\n") : Ids{};
    const Sample sample = task->sample_of(text);
    const Ids expected =
        joined({one_by_one(ended ? answer.substr(0, answer.size() - 1) : answer), end});
    BOOST_TEST(learned(sample) == expected, name);
    BOOST_TEST(sample.asked.size() == expected.size(), name);
    BOOST_TEST(task->ends() == (ended ? Ids{end[0]} : Ids{}), name);
    Tally tally;
    task->score(sample, expected, tally);
    BOOST_TEST(tally.at("sequences").mean() == 1);
  }
}

// A framed task puts a chat template, an instruction and examples around the samples of the plain
// task. The texts of prompt and answer must stay the same. In the reference attention (the tokens
// to which a model must attend), only the positions of the tokens may change.
BOOST_AUTO_TEST_CASE(framed_samples_and_masks_are_only_shifted) {
  for (const auto& [name, text] : printed) {
    for (const char* distribution : {"train", "ood"}) {
      const auto bare = make_task(name, {}, distribution);
      const auto task = make_task(
          name, with("begins.json", "llama3.2", {{"instruction", "auto"}, {"examples", "auto"}}),
          distribution);
      for (std::uint32_t i = 0; i < 20; ++i) {
        Rng one(3, Purpose::test, 0, i), other(3, Purpose::test, 0, i);
        const Sample plain = bare->sample(one, 0), framed = task->sample(other, 0);
        const auto [prompt, answer] = task->as_text(framed);
        BOOST_REQUIRE((std::pair(prompt, answer) == bare->as_text(plain)));
        BOOST_TEST(!task->check(prompt, answer).has_value());
        BOOST_TEST(std::ssize(framed.tokens) <= task->longest());

        const auto before = static_cast<std::int32_t>(instruction_of(*task));
        const auto given = static_cast<std::int32_t>(prompt.size());
        const std::int32_t between = framed.asked[0] + 1 - before - given;
        BOOST_REQUIRE(between > 0);
        const auto place = [&](std::int32_t character) {
          return before + character + (character < given ? 0 : between);
        };
        const auto rows = bare->reference(plain), shifted = task->reference(framed);
        BOOST_REQUIRE(shifted.size() == rows.size());
        for (std::size_t r = 0; r < rows.size(); ++r) {
          BOOST_TEST(shifted[r].row + 1 == place(rows[r].row + 1));
          BOOST_REQUIRE(shifted[r].columns.size() == rows[r].columns.size());
          for (std::size_t c = 0; c < rows[r].columns.size(); ++c) {
            BOOST_TEST(shifted[r].columns[c] == place(rows[r].columns[c]));
          }
        }
      }
      BOOST_TEST(instruction_of(*bare) == 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_default_examples_of_a_task_are_samples_of_the_task) {
  for (const auto& [name, text] : printed) {
    const auto bare = make_task(name, {});
    const auto none = make_task(name, with("plain.json", "chatml"));
    const auto told = make_task(name, with("plain.json", "chatml", {{"examples", "auto"}}));
    const Sample sample = told->sample_of(text);
    const auto first = static_cast<std::size_t>(instruction_of(*none));
    const auto last = static_cast<std::size_t>(instruction_of(*told));
    std::string lines =
        told->vocabulary().decode(std::span(sample.tokens).subspan(first, last - first));
    int count = 0;
    for (; !lines.empty(); ++count) {
      const std::size_t end = lines.find('\n');
      BOOST_REQUIRE(end != std::string::npos);
      BOOST_CHECK_NO_THROW(bare->sample_of(lines.substr(0, end)));
      lines.erase(0, end + 1);
    }
    BOOST_TEST(count == 2, name);
    const auto instructed =
        make_task(name, with("plain.json", "chatml", {{"instruction", "auto"}}));
    BOOST_TEST(instruction_of(*instructed) > instruction_of(*none), name);
  }
}

BOOST_AUTO_TEST_CASE(a_prompt_from_outside_is_encoded_like_a_samples) {
  const auto task = make_task("reversal", with("plain.json", "chatml", {{"instruction", "auto"}}));
  const Sample sample = task->sample_of("the=eht");
  const auto given = static_cast<std::size_t>(sample.asked[0]) + 1;
  BOOST_TEST(
      task->vocabulary().encode("the=") ==
      Ids(sample.tokens.begin(), sample.tokens.begin() + static_cast<std::ptrdiff_t>(given)));
  BOOST_TEST(task->vocabulary().encode_part("the=") == one_by_one("the="));
  // Prompts of the task `reversal` contain no blanks.
  BOOST_CHECK_THROW(task->vocabulary().encode("the ="), Error);
  BOOST_TEST(task->vocabulary().size() == 319);
  // The vocabulary of a model may have more tokens than the model's tokenizer.
  const auto padded = make_task("reversal", with("plain.json", "chatml", {{"vocabulary", "400"}}));
  BOOST_TEST(padded->vocabulary().size() == 400);
}

BOOST_AUTO_TEST_CASE(settings_that_do_not_fit_are_refused_in_one_line) {
  const auto says = [&](const std::string& name, const Values& values, std::string_view what) {
    BOOST_CHECK_EXCEPTION(make_task(name, values), Error, [&](const Error& error) {
      const std::string_view message = error.what();
      BOOST_TEST_MESSAGE(message);
      return message.find(what) != std::string_view::npos && message.find('\n') == message.npos;
    });
  };
  write_atomically(folder / "no_sign.json", replaced(small_tokenizer(), R"("=":)", R"("==":)"));
  says("reversal", with("no_sign.json", "chatml"), "expected one token for the character \"=\"");
  // The tokenizer has no token for the character "=", but texts of the task successor contain no
  // "=".
  BOOST_CHECK_NO_THROW(make_task("successor", with("no_sign.json", "chatml")));
  write_atomically(folder / "no_turn.json",
                   replaced(replaced(small_tokenizer(), R"("<|eot_id|>")", R"("<|end|>")"),
                            R"("<|eot_id|>":)", R"("<|end|>":)"));
  says("reversal", with("no_turn.json", "llama3"),
       "a tokenizer that encodes \"<|eot_id|>\" as one token");
  says("reversal", with("plain.json", "none"), "has no token that begins a text");
  says("reversal", with("begins.json", "none"), "has no token that ends a text");
  BOOST_CHECK_NO_THROW(make_task("successor", with("begins.json", "none")));
  says("reversal", with("plain.json", "alpaca"), "expected one of the chat templates");
  says("reversal", with("plain.json", "auto"), "option template");
  says("reversal", with("plain.json", "chatml", {{"examples", "\xc3\xa9"}}),
       "option examples: expected ASCII");
  says("reversal", with("plain.json", "chatml", {{"vocabulary", "40"}}),
       "expected token ids below 40");
  says("reversal", {{"instruction", "Turn it"}},
       "option instruction: the value \"Turn it\" needs a tokenizer");
  says("reversal", {{"examples", "auto"}}, "option examples: the value \"auto\" needs a tokenizer");
  says("reversal", {{"template", "chatml"}},
       "option template: the value \"chatml\" needs a tokenizer");
  says("reversal", {{"tokenizer", path("absent")}}, "absent");
}

BOOST_AUTO_TEST_CASE(a_text_run_can_be_fine_tuned_on_a_task_and_resumed) {
  std::string book;
  for (int i = 0; i < 200; ++i) book += "abc=cba and the dog ran to the cat.\n";
  write_atomically(folder / "book", book);
  const std::string quiet = " --threads 1 --quiet --json --evaluate_samples 4 ";
  json(
      "train --task text --text book --tokenizer plain.json --task.template chatml "
      "--task.vocabulary 320 --task.length 16 --width 16 --layers 1 --heads softmax:2 --steps 3 "
      "--batch 4 --out base" +
      quiet);
  std::filesystem::remove(folder / "plain.json");  // the run has its own copy of this tokenizer

  const std::string tuned =
      "train --from base --task reversal --task.instruction auto "
      "--task.examples 'ab=ba\\nabc=cba' --steps 6 --batch 4 --out ";
  BOOST_TEST(json(tuned + "whole" + quiet)["step"] == 6);
  const std::string ini = contents(folder / "whole/config.ini");
  for (const char* line : {"template = chatml\n", "vocabulary = 320\n", "instruction = auto\n",
                           "examples = ab=ba\\nabc=cba\n", "width = 16\n"}) {
    BOOST_TEST(ini.find(line) != std::string::npos, line);
  }
  // The config.ini of a fine-tuned run is enough to train it again. A run that is stopped and
  // resumed after every step ends with the same bits as a run without stops.
  json("train --config whole/config.ini --quiet --json --out anew");
  BOOST_TEST(contents(folder / "anew/config.ini") == ini);
  json(tuned + "parts --max-minutes 0" + quiet);
  for (int step = 2; step <= 6; ++step) {
    BOOST_TEST(json("train --resume parts --max-minutes 0 --quiet --json")["step"] == step);
  }
  const auto model = [&](const std::string& run) {
    return contents(folder / run / "checkpoints/step-6/model.safetensors");
  };
  BOOST_TEST((model("parts") == model("whole")));

  for (const char* reading : {"forced", "decoded"}) {
    const Json scores = json(text("eval whole --samples 3 --json --reading ", reading));
    BOOST_TEST(scores["rows"].size() == 4);  // two distributions with two metrics each
  }
  BOOST_TEST(json("inspect whole --samples 2 --json").contains("page"));
  const Json said = json("generate whole --prompt abc= --tokens 3 --json");
  const Json sample = json("data --config whole/config.ini --text abc=cba --mask --json");
  const auto& prompt = said["prompt_tokens"];
  BOOST_TEST(sample["pairs"][0][0].integer() == std::ssize(prompt.elements()));
  const Json drawn = json("data --config whole/config.ini --count 1 --json");
  BOOST_TEST(drawn["prompt"].string().ends_with("="));
  // A run whose tokens are single characters has no tokenizer. Another run can still start from it,
  // but not on the task `text`.
  json("train --task reversal --width 16 --layers 1 --heads softmax:2 --steps 1 --out plain" +
       quiet);
  json("train --from plain --steps 1 --out again" + quiet);
  refuses(1, "train --from plain --task text --text book --out y", "expected");
}

BOOST_AUTO_TEST_SUITE_END()
