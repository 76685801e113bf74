#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include "tests/check.h"

#include "nn/models/decoder.h"
#include "tests/temporary_folder.h"
#include "tests/training.h"

BOOST_AUTO_TEST_SUITE(kill_test)

using namespace longhand;
using namespace longhand::nn;
namespace fs = std::filesystem;

namespace {

Batch batch_of(std::int64_t step, std::int64_t part) {
  Rng rng(3, Purpose::data, static_cast<std::uint64_t>(step), static_cast<std::uint32_t>(part));
  Batch batch{.lengths = {9, 3}};
  for (int i = 0; i < 12; ++i) {
    batch.tokens.push_back(static_cast<std::int32_t>(rng.below(5)));
    batch.targets.push_back(batch.tokens.back());
  }
  return batch;
}

/// Trains to the end, starting from the latest checkpoint if there is one. Returns the values of
/// all parameters.
std::vector<std::vector<double>> train(const fs::path& folder, std::uint64_t most_file_bytes) {
  const auto backend = make_cpu_backend({.threads = 1});
  Decoder decoder(*backend,
                  {.vocabulary = 5,
                   .width = 8,
                   .layers = 1,
                   .mixers = parse_layers("softmax:1,fal:1", 8),
                   .inner = 8},
                  1);
  Trainer trainer(decoder, batch_of,
                  {.steps = 30,
                   .schedule = {.peak = 1e-2, .steps = 30},
                   .evaluate_every = 7,
                   .checkpoint_every = 1,
                   .checkpoints = {.folder = folder, .most_file_bytes = most_file_bytes}},
                  {.evaluate = [](std::int64_t step) {
                    return std::optional(static_cast<double>(step % 17));
                  }});
  trainer.resume_latest();
  trainer.run();
  return values_of(decoder);
}

/// Starts a training and kills it, again and again, until all its steps are done. A checkpoint file
/// has at most `most_file_bytes` bytes (0: no limit). Returns the number of files in the last
/// checkpoint.
std::ptrdiff_t kill_and_go_on(std::uint64_t most_file_bytes) {
  const TemporaryFolder folder;
  const auto whole = train(folder / "whole", 0);

  const fs::path cut = folder / "cut";
  const CheckpointStore store(cut, 2);
  Rng rng(1, Purpose::test);
  int killed = 0;
  std::int64_t reached = 0;
  for (int attempt = 0; attempt < 200 && reached < 30; ++attempt) {
    const pid_t child = fork();
    BOOST_REQUIRE(child >= 0);
    if (child == 0) {
      train(cut, most_file_bytes);
      _exit(0);
    }
    usleep(2000 + rng.below(25000));  // meanwhile the child writes one or a few checkpoints
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    killed += WIFSIGNALED(status) ? 1 : 0;
    const std::int64_t latest = store.latest().value_or(0);
    BOOST_TEST(latest >= reached);  // saved steps must never be lost
    reached = latest;
    if (latest > 0) BOOST_TEST(read_checkpoint_info(store.path(latest)).step == latest);
  }
  BOOST_TEST(killed >= 3);
  BOOST_CHECK(train(cut, most_file_bytes) == whole);
  // Steps 7, 14, 21, 28 and 30 have the scores 7, 14, 4, 11 and 13, so step 14 is the best.
  BOOST_TEST(store.best().value() == 14);
  for (const auto& entry : fs::directory_iterator(cut)) {
    BOOST_TEST(!entry.path().filename().string().starts_with("."), entry.path().string());
  }
  return std::distance(fs::directory_iterator(store.path(30)), {});
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_run_killed_at_any_moment_loses_nothing) {
  // A checkpoint consists of three files: model, optimizer and score.
  BOOST_TEST(kill_and_go_on(0) == 3);
}

BOOST_AUTO_TEST_CASE(a_killed_run_with_checkpoints_in_parts_loses_nothing) {
  BOOST_TEST(kill_and_go_on(2500) >= 6);
}

BOOST_AUTO_TEST_SUITE_END()
