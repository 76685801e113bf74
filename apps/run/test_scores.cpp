#include "apps/run/test_scores.h"

#include "core/error.h"

namespace longhand::app {

std::string unreadable(const nn::DecoderConfig& c, const tasks::Task& task) {
  const std::int64_t needed = task.longest();
  const auto refused = [&](std::int64_t most, std::string_view flag) {
    return text("samples of up to ", needed, " tokens, but the model reads at most ", most, flag);
  };
  if (c.given_positions && task.position_count() > c.longest) {
    return text("samples of up to ", task.position_count(), " positions, but the model has ",
                c.longest, " (--longest)");
  }
  if (c.positions == nn::Positions::learned && !c.given_positions && needed > c.longest) {
    return refused(c.longest, " (--longest)");
  }
  const auto most = nn::most_tokens(c);
  return most && needed > *most ? refused(*most, ", as its heads allow") : std::string();
}

void require_readable(const nn::DecoderConfig& model, const tasks::Task& task) {
  const std::string why = unreadable(model, task);
  LONGHAND_CHECK(why.empty(), "the model cannot read every sample of the task: the task has ", why);
}

TestScores::TestScores(const Config& config, nn::Communicator& ranks)
    : options_{.samples = config.training().evaluate_samples,
               .seed = config.training().seed,
               .ranks = &ranks} {
  for (const tasks::Distribution& d : config.distributions()) {
    tests_.push_back({d.name, config.task(d.name), d.compared});
  }
}

Json TestScores::of(nn::Decoder& model, std::int64_t step,
                    const std::function<void(const std::string&)>& say) const {
  Json line{{"step", step}}, intervals = Json::object(), too_long = Json::array();
  for (const Test& test : tests_) {
    if (const std::string why = unreadable(model.config(), *test.task); !why.empty()) {
      too_long.push_back(test.name);
      say(test.name + "  skipped: " + why);
      continue;
    }
    const tasks::Tally tally = evaluate(model, *test.task, options_);
    for (const tasks::Metric& metric : tally.metrics()) {
      const std::string key = test.name + "/" + metric.name;
      line[key] = metric.mean();
      if (metric.is_share) {
        const auto interval = tasks::wilson(metric.sum, static_cast<double>(metric.count));
        intervals[key] = {interval.low, interval.high};
      }
      say(test.name + "  " + metric.name + " " + text_of(metric));
    }
  }
  line["intervals"] = intervals;
  if (!too_long.empty()) line["too_long"] = too_long;
  return line;
}

double TestScores::total(const Json& scores) const {
  double sum = 0;
  for (const Test& test : tests_) {
    const std::string_view metric = test.task->main_metric();
    const std::string key = text(test.name, "/", metric);
    if (!test.compared || !scores.contains(key)) continue;
    sum += tasks::lower_is_better(metric) ? -scores[key].number() : scores[key].number();
  }
  return sum;
}

}  // namespace longhand::app
