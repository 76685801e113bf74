#pragma once

#include <string>
#include <utility>
#include <vector>

#include "apps/run/attention_measures.h"
#include "core/json.h"

/// Presents attention measures as text, JSON and parts of a page.
namespace longhand::app {

/// All measures as JSON.
Json to_json(const AttentionMeasures& measures);

/// All measures as tables. The table of heads shows the ten heads with the highest scores.
std::string to_text(const AttentionMeasures& measures);

/// A mean with its 95% interval, in percent: "3.21 [3.05, 3.37] %".
std::string percent_of(const tasks::Moments& values);
/// Welch's test: "t = 4.2 with 311.5 degrees of freedom, p = 3.4e-05", or the reason why there is
/// no test.
std::string text_of(const std::optional<tasks::Welch>& test);

/// A heat map of a head's attention weights in a sample, which is cut after `most` tokens. The
/// squares of the task's reference attention are outlined.
std::string head_picture(nn::Decoder& model, const tasks::Task& task, const tasks::Sample& sample,
                         const HeadScore& head, std::size_t most, const std::string& title);

/// Sections of an HTML page, each with a heading and its content. Some sections show the measures.
/// The others show one sample, cut after `most` tokens: the attention rollout and the weights of
/// the highest-ranked heads. The task's reference attention is outlined.
using Sections = std::vector<std::pair<std::string, std::string>>;
Sections attention_sections(const AttentionMeasures& measures, nn::Decoder& model,
                            const tasks::Task& task, const tasks::Sample& sample, std::size_t most);

}  // namespace longhand::app
