#include "nn/work.h"

namespace longhand::nn {

StepWork work_of(const Decoder& model, double tokens, double pairs) {
  const DecoderConfig& c = model.config();
  double entries = 0;
  for (const Parameter& p : model.parameters().all()) {
    if (p.value().shape().rank() != 2) continue;
    const bool looked_up = p.name().find("embed_") != std::string::npos &&
                           p.name().find("embed_out") == std::string::npos;
    if (!looked_up || (c.tied && p.name().ends_with("embed_in.weight"))) {
      entries += static_cast<double>(p.value().size());
    }
  }
  double kept = 0, columns_of_pairs = 0;  // numbers for backward, of a token
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    const HeadList& heads = c.heads_of(layer);
    for (const HeadGroup& group : heads) {
      if (group.kind != HeadKind::fal) columns_of_pairs += static_cast<double>(group.columns());
    }
    // x, both norms of it, queries, keys and values, heads, and the feed forward's two.
    kept += static_cast<double>(3 * c.width + 4 * columns(heads) + 2 * c.inner);
  }
  return {.operations = 6 * entries * tokens + 14 * columns_of_pairs * pairs,
          .bytes = 4 * kept * tokens * static_cast<double>(size_of(model.activations())) +
                   8 * static_cast<double>(
                           model.parameters().count() *
                           static_cast<std::int64_t>(size_of(model.parameters().type())))};
}

}  // namespace longhand::nn
