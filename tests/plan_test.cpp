#include "apps/run/plan.h"

#include "core/accounting_backend.h"
#include "tests/check.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(plan_test)

using namespace longhand;
using namespace longhand::app;

BOOST_AUTO_TEST_CASE(the_plan_counts_all_batches_of_a_step) {
  const auto plan_of = [](const std::string& parts, const std::string& accumulation) {
    Config config("chains");
    config.set("task.blocks", "4");
    config.set("training.batch", "16");
    config.set("training.parts", parts);
    config.set("training.accumulation", accumulation);
    config.set("training.steps", "1000");
    config.set("model.width", "16");
    const auto nothing = make_accounting_backend();
    const nn::Decoder model(*nothing, config.model(*config.task()), 1);
    const nn::Batch batch = config.batches(config.learned())(1, 0);
    const double peak = training_work(config).operations / 3600;
    return plan_line(config, model, batch, 0, peak, ".");
  };
  for (const char* parts : {"1", "4"}) {
    for (const char* accumulation : {"1", "2"}) {
      const std::string line = plan_of(parts, accumulation);
      BOOST_TEST(contains(line, "1000 steps, about 16 sequences and "));
      BOOST_TEST(contains(line, "; at least 60 min at this machine's peak"));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
