#pragma once

#include <string>
#include <utility>
#include <vector>

#include "apps/run/attention_measures.h"
#include "core/json.h"

/// Attention measures as text and as parts of a page.
namespace longhand::app {

/// All measures as JSON.
Json to_json(const AttentionMeasures& measures);

/// All measures as tables, with the first ten heads.
std::string to_text(const AttentionMeasures& measures);

/// A mean with its 95% interval in percent: "3.21 [3.05, 3.37] %".
std::string percent_of(const tasks::Moments& values);
/// "t = 4.2 with 311.5 degrees of freedom, p = 3.4e-05", or why there is no test.
std::string text_of(const std::optional<tasks::Welch>& test);

/// The weights of a head in a sample, cut after `most` tokens, as a picture with the reference
/// outlined.
std::string head_picture(nn::Decoder& model, const tasks::Task& task, const tasks::Sample& sample,
                         const HeadScore& head, std::size_t most, const std::string& title);

/// Parts of a page, each a heading and HTML: the measures; and for a sample, cut after `most`
/// tokens, its rollout and the attention of the highest-ranked heads, with the reference outlined.
using Sections = std::vector<std::pair<std::string, std::string>>;
Sections attention_sections(const AttentionMeasures& measures, nn::Decoder& model,
                            const tasks::Task& task, const tasks::Sample& sample, std::size_t most);

}  // namespace longhand::app
