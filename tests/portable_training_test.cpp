#include "tests/check.h"

#include "core/cpu/isa.h"
#include "core/sha256.h"
#include "tests/program.h"
#include "tests/transcript.h"

BOOST_AUTO_TEST_SUITE(portable_training_test)

using namespace longhand;

// Trainings with --math portable have the same parameters after each step on every processor. The
// hashes were computed on one machine, and every instruction set of every machine must find them.

namespace {

/// The SHA-256 of all hashes of parameters in a transcript, one per step.
std::string hash_of_steps(const std::filesystem::path& run) {
  Sha256 hash;
  std::int64_t steps = -1;  // the state of step 0 is not a step
  for (const Json& line : read_transcript(run)) {
    if (!line.contains("parameters")) continue;
    hash.add(line["parameters"]["hash"].string());
    ++steps;
  }
  BOOST_TEST(steps == 50);
  return hash.finish();
}

/// Trains a model for 50 steps on each instruction set and compares the parameters of all steps.
void expect_steps(const std::string& settings, const std::string& expected) {
  const Program longhand;
  std::ofstream words(longhand.folder / "words.txt");
  for (int i = 0; i < 400; ++i) words << (i % 3 ? "the mouse " : "a house ") << i * i % 17 << ' ';
  words.close();
  for (const cpu::Isa isa : cpu::supported_isas()) {
    const std::string name(cpu::name_of(isa));
    const auto outcome = longhand("train " + settings +
                                      " --math portable --steps 50 --warm_up 10 --batch 4 "
                                      "--evaluate_samples 2 --threads 2 --quiet --transcript "
                                      "--transcript-every 1 --out " +
                                      name,
                                  "LONGHAND_CPU=" + name);
    BOOST_REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
    BOOST_TEST_CONTEXT(name) { BOOST_TEST(hash_of_steps(longhand.folder / name) == expected); }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(flip_flop) {
  expect_steps(
      "--task flip-flop --task.instructions 16 --width 32 --layers 2 --heads softmax:1,fal:1",
      "eb9a99d22057c471b05becf37e26619371d0350855683350532aa029a615188c");
}

BOOST_AUTO_TEST_CASE(text) {
  expect_steps(
      "--task text --text words.txt --task.length 48 --width 16 --layers 2 --heads softmax:2",
      "c7ab59dd9ac29e7c845c2cf498ed84fa293af3d65fb37a7487e80ad82dfc78d4");
}

BOOST_AUTO_TEST_CASE(chacal) {
  expect_steps("--task flip-flop --task.instructions 24 --width 32 --layers 2 --heads chacal:2",
               "0f27f51db979bb4d8720d3ecfae0b15e864289857178380f5e58b01c26f61ea4");
}

BOOST_AUTO_TEST_SUITE_END()
