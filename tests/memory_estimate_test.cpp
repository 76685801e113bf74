#include "nn/training/memory_estimate.h"

#include <boost/test/data/test_case.hpp>
#include <iostream>
#include "tests/check.h"

#include "apps/run/memory.h"
#include "core/accounting_backend.h"
#include "nn/models/decoder.h"
#include "nn/ranks/threads.h"
#include "nn/training/trainer.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(memory_estimate_test)

using namespace longhand;
namespace data = boost::unit_test::data;

namespace {

struct Case {
  const char* name;
  std::int64_t width, layers, vocabulary, sequences, length;
  const char* heads;
  Math math = Math::fast;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

const Case cases[] = {
    {"narrow, many tokens", 64, 4, 64, 16, 256, "softmax:4"},
    {"wide, few tokens", 512, 2, 64, 2, 32, "softmax:8"},
    {"large vocabulary", 64, 2, 20'000, 4, 128, "softmax:4"},
    {"FAL and ChaCAL heads", 128, 3, 64, 8, 200, "softmax:2,fal:1,chacal:1"},
    {"bf16", 128, 3, 64, 8, 200, "softmax:4", Math::bf16},
};

nn::Batch batch_of(const Case& c, std::int64_t sequences) {
  nn::Batch batch;
  for (std::int64_t s = 0; s < sequences; ++s) {
    batch.lengths.push_back(static_cast<std::int32_t>(c.length));
    for (std::int64_t i = 0; i < c.length; ++i) {
      batch.tokens.push_back(static_cast<std::int32_t>(i % c.vocabulary));
      batch.targets.push_back(static_cast<std::int32_t>((i + 1) % c.vocabulary));
    }
  }
  return batch;
}

std::unique_ptr<nn::Model> model_of(const Case& c, Backend& backend, double deviation = 0.02) {
  nn::DecoderConfig config{.vocabulary = c.vocabulary,
                           .width = c.width,
                           .layers = c.layers,
                           .mixers = {},
                           .inner = 3 * c.width};
  config.mixers = {nn::parse_mixers(c.heads, c.width)};
  config.deviation = deviation;
  return std::make_unique<nn::Decoder>(backend, config, 1);
}

/// The allocator's peak memory during two training steps.
double measured(const Case& c) {
  const auto backend = make_cpu_backend({.threads = 2, .math = c.math});
  const auto model = model_of(c, *backend);
  nn::Trainer trainer(*model, [&](std::int64_t, std::int64_t) { return batch_of(c, c.sequences); },
                      {.steps = 2, .schedule = {.peak = 1e-3, .steps = 2}});
  trainer.run();
  return static_cast<double>(backend->memory().use().peak);
}

}  // namespace

BOOST_DATA_TEST_CASE(the_estimate_is_near_the_measured_peak, data::make(cases), c) {
  const auto made = [&](Backend& backend) { return model_of(c, backend); };
  const nn::MemoryEstimate whole =
      nn::estimate_training(made, {.threads = 2, .math = c.math}, batch_of(c, c.sequences));
  const double peak = measured(c), ratio = whole.total() / peak;
  BOOST_TEST_MESSAGE(c.name << ": " << whole.total() / (1 << 20) << " MiB estimated, "
                            << peak / (1 << 20) << " MiB measured, ratio " << ratio);
  BOOST_TEST(ratio > 0.99);
  BOOST_TEST(ratio < 1.01);

  const nn::MemoryEstimate from_half =
      nn::estimate_training(made, {.threads = 2, .math = c.math}, batch_of(c, c.sequences / 2), 2);
  BOOST_TEST(from_half.total() == whole.total(), boost::test_tools::tolerance(0.01));
}

BOOST_AUTO_TEST_CASE(the_estimate_for_a_rank_is_near_the_measured_peak) {
  // The parameters of this model take 4.6 MB, many times the 64 KiB of the buckets in which ranks
  // exchange gradients.
  const Case c{"ranks", 128, 6, 64, 2, 100, "softmax:4"};
  const auto made = [&](Backend& backend) { return model_of(c, backend); };
  const nn::Batch batch = batch_of(c, c.sequences);
  for (const nn::Sharing sharing :
       {nn::Sharing::nothing, nn::Sharing::moments, nn::Sharing::gradients}) {
    for (const int size : {1, 2, 4}) {
      for (const std::int64_t parts : {4, 8}) {
        std::vector<double> peaks(static_cast<std::size_t>(size));
        nn::run_ranks(size, [&](nn::Communicator& ranks) {
          const auto backend = make_cpu_backend({.threads = 1});
          const auto model = model_of(c, *backend);
          const nn::TrainerOptions options{.steps = 2,
                                           .parts = parts,
                                           .sharing = sharing,
                                           .bucket_bytes = 64 << 10,
                                           .schedule = {.peak = 1e-3, .steps = 2}};
          nn::Trainer(
              *model, [&](std::int64_t, std::int64_t) { return batch; }, options, {}, ranks)
              .run();
          peaks[static_cast<std::size_t>(ranks.rank())] =
              static_cast<double>(backend->memory().use().peak);
        });
        const nn::MemoryEstimate need = nn::estimate_training(made, {.threads = 1}, batch, 1, {},
                                                              {.ranks = size,
                                                               .parts = parts,
                                                               .sharing = sharing,
                                                               .bucket_bytes = 64 << 10,
                                                               .keeps_panels = true});
        const double ratio = need.total() / std::ranges::max(peaks);
        BOOST_TEST_CONTEXT(size << " ranks, " << parts << " parts, sharing "
                                << static_cast<int>(sharing)) {
          BOOST_TEST(ratio > 0.93);
          // The upper bound is wide because panels (packed operands of matrix products) are cached
          // in blocks of 2 MiB. The instruction set determines which products cache panels.
          BOOST_TEST(ratio < 1.2);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_estimate_lists_the_memory_of_a_rank_by_purpose) {
  const Case c = cases[1];
  const auto made = [&](Backend& backend) { return model_of(c, backend); };
  const auto of = [&](nn::Sharing sharing, std::int64_t ranks) {
    return nn::estimate_training(made, {}, batch_of(c, 2), 1, {},
                                 {.ranks = ranks, .parts = 4, .sharing = sharing});
  };
  const nn::MemoryEstimate alone = of(nn::Sharing::gradients, 1),
                           whole = of(nn::Sharing::nothing, 4),
                           moments = of(nn::Sharing::moments, 4),
                           gradients = of(nn::Sharing::gradients, 4);
  // A single rank computes all four parts of a step. Their gradients are added in a binary tree
  // with three levels, each of which stores one set of gradients.
  BOOST_TEST(alone.gradients == 3 * whole.gradients);
  BOOST_TEST(alone.moments == whole.moments);
  BOOST_TEST(moments.moments < 0.5 * whole.moments);
  BOOST_TEST(moments.gradients == whole.gradients);
  BOOST_TEST(gradients.moments == moments.moments);
  BOOST_TEST(gradients.gradients <= whole.gradients);
}

BOOST_AUTO_TEST_CASE(the_estimate_lists_the_memory_by_purpose) {
  const Case c = cases[1];
  const auto made = [&](Backend& backend) { return model_of(c, backend); };
  const nn::MemoryEstimate need = nn::estimate_training(made, {}, batch_of(c, 2));
  const auto backend = make_accounting_backend();
  const double numbers = static_cast<double>(model_of(c, *backend)->parameters().count());
  // The allocator rounds sizes up to size classes, so the memory exceeds 4 bytes per parameter by
  // up to an eighth.
  BOOST_TEST(need.parameters == 4 * numbers, boost::test_tools::tolerance(0.13));
  BOOST_TEST(need.gradients == need.parameters, boost::test_tools::tolerance(0.01));
  BOOST_TEST(need.moments == 2 * need.parameters, boost::test_tools::tolerance(0.01));
  BOOST_TEST(need.activations > 0);
}

BOOST_AUTO_TEST_CASE(the_memory_of_a_model_larger_than_any_machine_can_be_estimated) {
  const Case c{"huge", 1 << 15, 500, 1 << 16, 1, 64, "softmax:8"};
  const auto made = [&](Backend& backend) { return model_of(c, backend, 0); };
  const nn::MemoryEstimate need = nn::estimate_training(made, {}, batch_of(c, 1), 1 << 24);
  BOOST_TEST(need.parameters > 1e12);
  BOOST_TEST(need.activations > 1e14);
}

BOOST_AUTO_TEST_CASE(training_that_does_not_fit_in_memory_is_refused_with_its_estimate) {
  app::Config config("flip-flop");
  config.set("task.instructions", "16");
  BOOST_TEST(app::require_memory(config, *config.task()).starts_with("needs about "));
  BOOST_TEST(contains(app::require_memory(config, *config.task(), 4), " on each of 4 ranks: "));
  config.set("training.batch", "16777216");
  const std::string message = refusal([&] { app::require_memory(config, *config.task()); });
  BOOST_TEST(message.starts_with("the training needs about "), message);
  BOOST_TEST(contains(message, " for 16777216 sequences at once; this machine has "));
  BOOST_TEST(
      contains(message, "; to need less memory, use a smaller --batch, more --accumulation, "));
  config.set("training.accumulation", "65536");
  BOOST_TEST(app::require_memory(config, *config.task()).starts_with("needs about "));
}

BOOST_AUTO_TEST_SUITE_END()
