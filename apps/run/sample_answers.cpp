#include "apps/run/sample_answers.h"

#include "apps/run/evaluation.h"
#include "core/utf8.h"
#include "nn/models/decode.h"

namespace longhand::app {
namespace {

constexpr std::int64_t samples_shown = 3;
constexpr std::size_t longest_shown = 400;  // maximum bytes of each shown text

/// Returns the text or, if the text is too long, "..." and the end of the text.
std::string shortened(std::string whole) {
  if (whole.size() <= longest_shown) return whole;
  std::size_t begin = whole.size() - longest_shown;
  // Move to the start of a UTF-8 character.
  while (begin < whole.size() && continues_utf8(whole[begin])) ++begin;
  return "..." + whole.substr(begin);
}

}  // namespace

Json sample_answers(nn::Decoder& model, const tasks::Task& task, std::uint64_t seed) {
  const tasks::Vocabulary& vocabulary = task.vocabulary();
  Json answers = Json::array();
  const tasks::Outputs outputs = task.outputs();
  if (outputs.groups != 1 || !outputs.says_next)
    return answers;  // the task's classes are not tokens, so there is no text to show
  const EvaluationOptions few{.samples = samples_shown, .seed = seed};
  for_samples(task, few, [&](std::span<const tasks::Sample> samples) {
    const auto choices = nn::predict(model, batch_for(model, task, samples));
    std::size_t first = 0;  // index of the sample's first output
    for (const tasks::Sample& sample : samples) {
      const std::span all(choices.data() + first, sample.targets.size());
      first += sample.targets.size();
      if (sample.asked.empty() || sample.targets.size() != sample.tokens.size()) continue;
      std::vector<std::int32_t> expected, said;
      for (const std::int32_t output : sample.asked) {
        expected.push_back(sample.targets[static_cast<std::size_t>(output)]);
        said.push_back(all[static_cast<std::size_t>(output)]);
      }
      const std::int32_t begin = sample.asked.front();
      const bool in_one = sample.asked.back() - begin + 1 == std::ssize(sample.asked) &&
                          begin + std::ssize(sample.asked) + 1 >= std::ssize(sample.tokens);
      const std::span<const std::int32_t> tokens(sample.tokens);
      const auto prompt =
          in_one ? tokens.first(static_cast<std::size_t>(begin) + 1) : tokens.subspan(0);
      answers.push_back({{"prompt", shortened(vocabulary.decode(prompt))},
                         {"expected", shortened(vocabulary.decode(expected))},
                         {"text", shortened(vocabulary.decode(said))}});
    }
  });
  return answers;
}

}  // namespace longhand::app
