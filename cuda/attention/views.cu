#include "cuda/attention/run.h"

namespace longhand::cuda {

HeadsView view(const Heads& x) {
  if (!x) return {};
  const auto size = static_cast<std::int64_t>(size_of(x.data.dtype()));
  auto* const at = static_cast<std::byte*>(x.data.address()) + x.first_column * size;
  const bool aligned = reinterpret_cast<std::uintptr_t>(at) % 16 == 0 &&
                       x.data.columns() * size % 16 == 0 && x.width % 8 == 0;
  return {.at = at,
          .columns = x.data.columns(),
          .width = static_cast<std::int32_t>(x.width),
          .half = x.data.dtype() == DType::bf16,
          .aligned = aligned};
}

HeadsView view(const HeadsTarget& x) {
  HeadsView seen = view(x.heads);
  seen.add = x.add;
  return seen;
}

SegmentsView view(const Segments& queries, const Segments& keys) {
  return {.query_begin = queries.begin().data<std::int32_t>(),
          .query_length = queries.length().data<std::int32_t>(),
          .key_begin = keys.begin().data<std::int32_t>(),
          .key_length = keys.length().data<std::int32_t>(),
          .count = static_cast<std::int32_t>(queries.count())};
}

ScoresView view(const Scores& scores) {
  return {.q = view(scores.q),
          .k = view(scores.k),
          .segments = view(scores.queries, scores.keys),
          .window = scores.window,
          .scale = static_cast<float>(scores.scale),
          .tau = pointer(scores.multiplier),
          .shift = pointer(scores.decay),
          .heads = static_cast<std::int32_t>(scores.q.heads),
          .group = static_cast<std::int32_t>(scores.q.heads / scores.k.heads),
          .causal = scores.causal};
}

}  // namespace longhand::cuda
