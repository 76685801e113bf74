// Text of one's own, as a task and as a user meets it.
#include "tasks/text.h"

#include <cmath>

#include "core/atomic_file.h"
#include "core/mapped_file.h"
#include "core/safetensors.h"
#include "tests/program.h"

using namespace longhand;
using namespace longhand::tasks;

namespace {

std::unique_ptr<Task> make(std::initializer_list<std::pair<const char*, std::string>> options,
                           std::string_view distribution = {}) {
  const TaskKind kind = own_text();
  OptionValues values = kind.defaults();
  for (const auto& [name, value] : options) values.set(name, value);
  return kind.make(values, distribution);
}

/// "0123...": the byte at place i is i % 251, so that a sample shows where it is from.
std::string places(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += static_cast<char>(i % 251);
  return text;
}

std::string sentences(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "the cat sat on the mat. the dog ran to the cat.\n";
  return text;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(text_test, Program)

BOOST_AUTO_TEST_CASE(samples_are_windows_of_the_part_they_belong_to) {
  write_atomically(folder / "t", places(250));
  const std::string file = path("t");
  std::int32_t least = 1000, most = 0;
  for (const char* part : {"train", "validation"}) {
    const auto task = make({{"text", file}, {"length", "9"}, {"held_out", "0.2"}}, part);
    for (std::uint32_t i = 0; i < 500; ++i) {
      Rng rng(1, Purpose::test, 0, i);
      const Sample sample = task->sample(rng, 0);
      BOOST_REQUIRE(sample.tokens.size() == 10u);
      BOOST_REQUIRE(sample.tokens.back() - sample.tokens.front() == 9);
      if (std::string_view(part) == "train") {
        most = std::max(most, sample.tokens.back());
      } else {
        least = std::min(least, sample.tokens.front());
      }
      BOOST_REQUIRE(task->target_bytes(sample) == 9);
    }
  }
  BOOST_TEST(most == 199);   // its very last token is reached,
  BOOST_TEST(least == 200);  // and the first of what is held out
}

BOOST_AUTO_TEST_CASE(what_cannot_be_learned_from_is_refused_when_it_is_needed) {
  Rng rng(1, Purpose::test);
  BOOST_CHECK_THROW(make({})->sample(rng, 0), Error);
  BOOST_CHECK_THROW(make({{"text", path("absent")}})->sample(rng, 0), Error);
  write_atomically(folder / "short", "abc");
  BOOST_CHECK_THROW(make({{"text", path("short")}, {"length", "8"}})->sample(rng, 0), Error);
  BOOST_CHECK_THROW(make({{"tokenizer", path("absent")}}), Error);
  BOOST_CHECK_THROW(make({{"end", "1,x"}}), Error);
}

BOOST_AUTO_TEST_CASE(a_byte_model_learns_a_text_and_goes_on_with_it) {
  write_atomically(folder / "book", sentences(200));
  const auto trained = (*this)(
      "train --task text --text book --task.length 32 --width 32 --layers 2 --heads softmax:2 "
      "--steps 300 --batch 16 --rate 3e-3 --warm_up 10 --evaluate_samples 10 --quiet --out run");
  BOOST_REQUIRE_MESSAGE(trained.status == 0, trained.err);
  const Json scores = json("eval run --samples 20 --json");
  double bits = 10, perplexity = 0;
  for (const Json& row : scores["rows"]) {
    if (row["on"] != "validation") continue;
    if (row["metric"] == "bits_per_byte") bits = row["value"].number();
    if (row["metric"] == "perplexity") perplexity = row["value"].number();
  }
  BOOST_TEST(bits < 0.5);
  BOOST_TEST(std::abs(std::log2(perplexity) - bits) < 1e-6);  // a token is a byte

  BOOST_TEST((*this)("generate run --prompt 'the cat sat' --tokens 12").out ==
             "the cat sat on the mat.\n");
  BOOST_TEST((*this)("generate run --prompt 'the cat sat' --tokens 12 --stop mat").out ==
             "the cat sat on the \n");
  const std::string warm = "generate run --prompt 'the ' --temperature 1 --tokens 40 --seed ";
  BOOST_TEST((*this)(warm + "5").out == (*this)(warm + "5 --threads 1").out);
  BOOST_TEST((*this)(warm + "5").out != (*this)(warm + "6").out);
  const Json two = json("generate run --prompt 'the c' --prompt 'the d' --tokens 2 --json");
  BOOST_TEST(two["continuations"][0]["text"] == "at");
  BOOST_TEST(two["continuations"][1]["text"] == "og");
  BOOST_TEST(two["continuations"][1]["log_probabilities"][0].number() > -0.5);
  BOOST_TEST((*this)("generate run --prompt 'the cat' --tokens 0 --logits l.safetensors").status ==
             0);
  const SafetensorsFile logits = SafetensorsFile::open(folder / "l.safetensors");
  BOOST_TEST((logits.at("logits").shape == Shape{7, 256}));

  // Without its text the model can still be used.
  std::filesystem::remove(folder / "book");
  BOOST_TEST((*this)("generate run --prompt 'the c' --tokens 2").out == "the cat\n");
  BOOST_TEST((*this)("eval run --samples 5").status == 1);
}

BOOST_AUTO_TEST_CASE(a_run_of_tokens_carries_its_tokenizer) {
  write_atomically(folder / "book", sentences(200));
  BOOST_REQUIRE((*this)("tokenize train book --out t.json --size 300").status == 0);
  const auto trained = (*this)(
      "train --task text --text book --tokenizer t.json --task.length 16 --width 32 --layers 2 "
      "--heads softmax:2 --steps 150 --batch 16 --rate 3e-3 --warm_up 10 --evaluate_samples 5 "
      "--quiet --out run");
  BOOST_REQUIRE_MESSAGE(trained.status == 0, trained.err);
  std::filesystem::remove(folder / "t.json");
  BOOST_TEST((*this)("generate run --prompt 'the cat sat' --tokens 3")
                 .out.starts_with("the cat sat on the"));
  // A resumed run of another folder finds its tokens and its tokenizer.
  BOOST_TEST((*this)("eval run --samples 5").status == 0);
}

BOOST_AUTO_TEST_CASE(wrong_words_are_refused_in_one_line) {
  refuses(1, "train --task text --steps 1 --quiet --out r", "--text FILE");
  refuses(1, "train --task text --text absent --steps 1 --quiet --out r", "absent");
  refuses(2, "train --task flip-flop --text absent --out r", "--text");
  refuses(2, "train --task text --text x --tokenizer absent --out r", "absent");
  refuses(2, "generate r --prompt x --temperature hot", "--temperature");
  refuses(2, "generate r --prompt x --top-p 2", "--top-p");
  BOOST_TEST(!std::filesystem::exists(folder / "r"));
}

BOOST_AUTO_TEST_SUITE_END()
