#include "core/contract/heads_check.h"

#include <algorithm>
#include <cmath>

#include "core/backend.h"

namespace longhand {
namespace {

constexpr std::int64_t most_window = std::int64_t{1} << 40;

}  // namespace

HeadArguments::HeadArguments(std::string_view op, const Heads& q) : op_(op) {
  require(static_cast<bool>(q), "q", "expected a tensor, got none");
  type_ = q.data.dtype();
  require(is_float(type_), "q", "expected a float type, got ", type_);
  backend_ = &q.data.backend();
}

void HeadArguments::same_backend(std::string_view name, const Tensor& tensor) const {
  require(&tensor.backend() == backend_, name, "expected the backend of q (", backend_->name(),
          "), got another (", tensor.backend().name(), ")");
}

void HeadArguments::place(std::string_view name, const Heads& heads, bool output) {
  const Tensor& data = heads.data;
  const auto* begin = static_cast<const std::byte*>(data.address());
  const Place here{
      name, begin, begin + data.bytes(), data.columns(), heads.first_column, heads.end_column()};
  if (output) {
    for (const Place& other : places_) {
      if (here.begin >= other.end || other.begin >= here.end) continue;
      const bool one_tensor = here.begin == other.begin && here.columns == other.columns;
      const bool apart = one_tensor && (here.first >= other.last || other.first >= here.last);
      require(apart, name, "expected memory of its own, got memory shared with ", other.name);
    }
  }
  places_.push_back(here);
}

void HeadArguments::in(std::string_view name, const Heads& heads, std::int64_t rows,
                       std::int64_t count, std::int64_t width) {
  require(static_cast<bool>(heads), name, "expected a tensor, got none");
  same_backend(name, heads.data);
  const Shape& shape = heads.data.shape();
  require(heads.data.dtype() == type_, name, "expected ", type_, ", got ", heads.data.dtype());
  require(shape.rank() == 2 && shape[0] >= rows, name, "expected [", rows,
          " or more, columns], got ", shape);
  require(
      heads.heads == count && count >= 1 && heads.width >= 1 && (width < 0 || heads.width == width),
      name, "expected ", count, " heads", width < 0 ? "" : text(" of ", width), ", got ",
      heads.heads, " of ", heads.width);
  require(heads.first_column >= 0 && heads.first_column <= shape[1] &&
              heads.width <= (shape[1] - heads.first_column) / heads.heads,
          name, "expected columns within ", shape, ", got ", heads.heads, " heads of ", heads.width,
          " columns from column ", heads.first_column);
  place(name, heads, false);
}

void HeadArguments::out(std::string_view name, const Heads& heads, std::int64_t rows,
                        std::int64_t count, std::int64_t width) {
  in(name, heads, rows, count, width);
  places_.pop_back();
  place(name, heads, true);
}

void HeadArguments::out(std::string_view name, const HeadsTarget& target, const Heads& like) {
  if (target) out(name, target.heads, like.data.rows(), like.heads, like.width);
}

void HeadArguments::in(std::string_view name, const Tensor& tensor, const Shape& shape,
                       DType type) {
  require(static_cast<bool>(tensor), name, "expected ", shape, " ", type, ", got none");
  same_backend(name, tensor);
  require(tensor.shape() == shape && tensor.dtype() == type, name, "expected ", shape, " ", type,
          ", got ", tensor.shape(), " ", tensor.dtype());
  place(name, {tensor, 0, 1, tensor.columns()}, false);
}

void HeadArguments::out(std::string_view name, const Tensor& tensor, const Shape& shape,
                        DType type) {
  in(name, tensor, shape, type);
  places_.pop_back();
  place(name, {tensor, 0, 1, tensor.columns()}, true);
}

void HeadArguments::segments(const Segments& queries, const Segments& keys, std::int64_t key_rows,
                             bool backward, bool causal) {
  require(queries && keys, "segments", "expected queries and keys, got none");
  require(queries.count() == keys.count(), "segments", "expected ", queries.count(),
          " segments of keys, the number of segments of queries, got ", keys.count());
  for (std::size_t s = 0; s < queries.lengths().size(); ++s) {
    const std::int32_t count = queries.lengths()[s], keys_there = keys.lengths()[s];
    require(causal ? count <= keys_there : count == 0 || keys_there > 0, "segments", "segment ", s,
            " has ", count, " queries but only ", keys_there, " keys");
  }
  require(queries.tile(), "queries", "expected consecutive segments that begin at row 0");
  require(keys.rows() <= key_rows, "keys", "expected rows up to ", key_rows, ", got ", keys.rows());
  if (backward) {
    require(keys.tile() && keys.tokens() == key_rows, "keys",
            "the backward pass expects consecutive segments that cover all ", key_rows,
            " rows, got segments of ", keys.tokens(), " rows");
  }
}

void HeadArguments::queries_and_keys(const Heads& q, const Heads& k, const Segments& queries,
                                     const Segments& keys, bool backward, bool causal) {
  in("q", q, 0, q.heads, -1);
  require(k.heads >= 1 && q.heads % k.heads == 0, "k", "expected a number of heads that divides ",
          q.heads, ", the number of heads of q, got ", k.heads);
  in("k", k, 0, k.heads, q.width);
  require(queries.tokens() == q.data.rows(), "q", "expected ", queries.tokens(),
          " rows, one for each token of the segments, got ", q.data.rows());
  segments(queries, keys, k.data.rows(), backward, causal);
}

void HeadArguments::earlier(const Heads& earlier, const Segments& queries, const Segments& keys,
                            std::int64_t heads, std::int64_t width) {
  if (earlier) in("earlier", earlier, keys.rows(), heads, width);
  require(earlier || std::ranges::equal(queries.lengths(), keys.lengths()), "earlier",
          "expected the cached outputs at the positions before the first query, got none");
}

void HeadArguments::same_tokens(const Segments& queries, const Segments& keys) const {
  require(std::ranges::equal(queries.lengths(), keys.lengths()), "segments",
          "the backward pass expects as many queries as keys in every segment");
}

void HeadArguments::scores(const Scores& s, bool backward) {
  queries_and_keys(s.q, s.k, s.queries, s.keys, backward, s.causal);
  require(s.window >= 0 && s.window <= most_window, "window", "expected 0 to 2^40, got ", s.window);
  require(std::isfinite(s.scale), "scale", "expected a finite number, got ", s.scale);
  if (s.multiplier) in("tau", s.multiplier, {s.q.data.rows(), s.q.heads}, master());
  if (s.decay) in("shift", s.decay, {s.k.data.rows(), s.q.heads}, master());
  if (s.causal) return;
  require(s.window == 0, "window", "expected 0 without a causal mask, got ", s.window);
  require(!s.decay, "shift", "expected no tensor without a causal mask");
}

void HeadArguments::causal(const Scores& s) const {
  require(s.causal, "causal",
          "expected true, because only softmax attention works without a causal mask");
}

void HeadArguments::out(std::string_view name, const Target& target, const Tensor& like) {
  if (!target) return;
  require(static_cast<bool>(like), name,
          "expected no tensor, because the input with this gradient is empty");
  out(name, target.tensor, like.shape(), master());
}

void HeadArguments::out(const ScoreTargets& targets, const Scores& s) {
  out("dtau", targets.multiplier, s.multiplier);
  out("dshift", targets.decay, s.decay);
}

}  // namespace longhand
