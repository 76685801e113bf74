#include "nn/models/cached_decoder.h"

#include <algorithm>

#include "core/contract/elementwise.h"
#include "core/contract/gather.h"

namespace longhand::nn {
namespace {

/// Number of passes with the same shape that are executed before a pass is recorded. Recording
/// takes as long as several passes, so rare shapes are not recorded.
constexpr std::int64_t passes_alone = 2;

/// Returns the index, among all new tokens, of the last token of each sequence that has new tokens.
std::vector<std::int32_t> last_rows(std::span<const std::int32_t> lengths) {
  std::vector<std::int32_t> rows;
  std::int32_t end = 0;
  for (const std::int32_t length : lengths) {
    end += length;
    if (length > 0) rows.push_back(end - 1);
  }
  return rows;
}

}  // namespace

CachedDecoder::CachedDecoder(Decoder& decoder, std::span<const std::int32_t> capacities,
                             std::int64_t head, Wanted wanted)
    : decoder_(decoder), cache_(decoder.make_cache(capacities)), head_(head), wanted_(wanted) {}

Tensor CachedDecoder::read(const NewTokens& fresh) {
  cache_.extend(fresh.lengths);
  place(fresh);
  if (passes_ <= passes_alone || !decoder_.recordable()) {
    pass();
    return next_;
  }
  if (!repeat_) repeat_ = decoder_.backend().repeat();
  // Checks the lengths of the sequences. pass() contains this check, but a replay does not call
  // pass().
  decoder_.prepare(input_.longest);
  repeat_->run([this] { pass(); });
  return next_;
}

void CachedDecoder::place(const NewTokens& fresh) {
  const std::vector<std::int32_t> last = last_rows(fresh.lengths);
  const std::int64_t longest = fresh.positions.empty()
                                   ? std::ranges::max(cache_.lengths())
                                   : std::int64_t{std::ranges::max(fresh.positions)} + 1;
  const PassShape shape{.tokens = std::ssize(fresh.tokens),
                        .sequences = std::ssize(last),
                        .pairs = std::ssize(fresh.reference),
                        .position_rows = position_rows(longest, decoder_.config().longest)};
  if (shape == shape_) {
    ++passes_;
    if (!std::ranges::equal(input_.segments.lengths(), fresh.lengths)) last_.assign(last);
    input_.assign(fresh.tokens, fresh.lengths, cache_.lengths(), fresh.reference, fresh.positions);
    return;
  }
  Backend& backend = decoder_.backend();
  repeat_.reset();
  shape_ = shape;
  passes_ = 1;
  input_ = make_input(backend, fresh.tokens, fresh.lengths, cache_.lengths(), fresh.reference,
                      fresh.positions);
  last_ = Tensor::from(backend, {shape.sequences}, last);
  if (wanted_ == Wanted::likeliest) next_ = Tensor(backend, {shape.sequences}, DType::i32);
}

void CachedDecoder::pass() {
  Backend& backend = decoder_.backend();
  const Var features = decoder_.features(input_, &cache_);
  const Tensor& x = features.value();
  const Tensor ends(backend, {last_.size(), x.columns()}, x.dtype());
  backend(longhand::Embedding{.table = x, .ids = last_, .y = ends});
  const Tensor logits = decoder_.logits(ends, head_).value();
  if (wanted_ == Wanted::likeliest) {
    backend(Argmax{.x = logits, .y = next_});
  } else if (repeat_) {
    backend(Copy{.x = logits, .y = next_});  // overwrites the previous result
  } else {
    next_ = logits;
  }
}

}  // namespace longhand::nn
