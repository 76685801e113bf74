#include "nn/decoder_config.h"

#include <algorithm>

#include "core/error.h"

namespace longhand::nn {

bool DecoderConfig::has(HeadKind kind) const {
  return std::any_of(heads.begin(), heads.end(), [&](const HeadList& list) {
    return std::any_of(list.begin(), list.end(),
                       [&](const HeadGroup& group) { return group.kind == kind; });
  });
}

void check(const DecoderConfig& c) {
  LONGHAND_CHECK(
      c.vocabulary >= 1 && c.width >= 1 && c.inner >= 1 && c.layers >= 0 && c.longest >= 1,
      "model: expected a vocabulary, widths and positions, got vocabulary ", c.vocabulary,
      ", width ", c.width, ", inner ", c.inner, ", layers ", c.layers, ", longest ", c.longest);
  const auto entries = static_cast<std::int64_t>(c.heads.size());
  LONGHAND_CHECK(entries == 1 || entries == c.layers,
                 "heads: expected one entry for all layers or one for each of ", c.layers, ", got ",
                 entries);
  for (const HeadList& list : c.heads) {
    LONGHAND_CHECK(!list.empty(), "heads: expected at least one group of heads, got none");
  }
  const bool learned = c.learned_gamma != Learned::no;
  LONGHAND_CHECK(c.gamma >= 0 && c.gamma < 1 && (c.gamma > 0 || !learned), "gamma: expected ",
                 learned ? "0 < gamma < 1 where it is learned" : "0 <= gamma < 1", ", got ",
                 c.gamma);
  LONGHAND_CHECK(!learned || c.has(HeadKind::chacal), "learned gamma: expected ChaCAL heads, got ",
                 text_of(c.heads));
  LONGHAND_CHECK(c.window >= 0, "window: expected 0 or more keys, got ", c.window);
  LONGHAND_CHECK(!c.tied || (c.outputs.size() <= 1 &&
                             (c.outputs.empty() || c.outputs.front() == c.vocabulary)),
                 "tied: expected one output layer over the vocabulary of ", c.vocabulary, ", got ",
                 c.outputs.size(), c.outputs.size() == 1 ? " over " : " layers, the first over ",
                 c.outputs.empty() ? 0 : c.outputs.front());
}

}  // namespace longhand::nn
