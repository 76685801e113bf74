#include "apps/run/text_samples.h"

#include <algorithm>

#include "apps/run/continuation.h"
#include "nn/models/decode.h"

namespace longhand::app {
namespace {

constexpr std::uint64_t most_prompts = 3;
// Maximum number of tokens of a prompt that is the beginning of a sample.
constexpr std::size_t longest_prompt = 24;
constexpr std::int64_t most_tokens = 64;

/// Returns the tokens before the first target. If there is at most one such token, not counting the
/// tokens that begin every text, returns the first half of the sample instead, but at most
/// longest_prompt tokens.
std::vector<std::int32_t> prompt_of(const tasks::Sample& sample,
                                    const tasks::Vocabulary& vocabulary) {
  const auto first = std::ranges::find_if(sample.targets, [](auto target) { return target >= 0; });
  auto size = static_cast<std::size_t>(first - sample.targets.begin()) + 1;
  if (size <= vocabulary.beginning().size() + 1) {
    size = std::min(longest_prompt, (sample.tokens.size() + 1) / 2);
  }
  return {sample.tokens.begin(), sample.tokens.begin() + static_cast<std::ptrdiff_t>(size)};
}

}  // namespace

TextSamples::TextSamples(const Config& config)
    : task_(config.task(config.ranking_distributions().front())), seed_(config.training().seed) {
  const std::uint64_t count = task_->count(), wanted = std::min(count, most_prompts);
  for (std::uint64_t i = 0; i < wanted; ++i) {
    prompts_.push_back(prompt_of(task_->sample_at(count / wanted * i, 0), task_->vocabulary()));
  }
}

Json TextSamples::of(nn::Decoder& model) const {
  const tasks::Vocabulary& vocabulary = task_->vocabulary();
  const std::vector<std::int32_t> ends = task_->ends();
  nn::GenerateOptions options{.stops = ends, .sampling = {.temperature = 0.8}, .seed = seed_};
  for (const auto& prompt : prompts_) {
    const std::int64_t room = model.config().longest - std::ssize(prompt);
    options.most_each.push_back(std::clamp<std::int64_t>(room, 0, most_tokens));
  }
  options.positions = given_positions(model, *task_, seed_);
  std::vector<std::vector<std::int32_t>> said = nn::generate(model, prompts_, options);
  Json samples = Json::array();
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (!said[i].empty() && std::ranges::count(ends, said[i].back())) said[i].pop_back();
    samples.push_back(
        {{"prompt", vocabulary.decode(prompts_[i])}, {"text", vocabulary.decode(said[i])}});
  }
  return samples;
}

}  // namespace longhand::app
