#include "nn/heads.h"

#include <array>
#include <charconv>
#include <optional>

#include "autograd/chacal.h"
#include "autograd/elementwise.h"
#include "autograd/fal.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "core/quote.h"

namespace longhand::nn {
namespace {

constexpr std::array<std::string_view, 3> kind_names{"softmax", "fal", "chacal"};

[[noreturn]] void not_heads(std::string_view text, std::string_view part) {
  fail("heads ", quote(text),
       ": expected KIND:COUNT or KIND:COUNTxWIDTH with KIND softmax, fal or chacal, ",
       "joined by commas, got ", quote(part));
}

std::optional<std::int64_t> positive(std::string_view digits) {
  std::int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stop != end || value < 1 || value > 1'000'000) return std::nullopt;
  return value;
}

/// width 0: not given
HeadGroup parse_group(std::string_view text, std::string_view part) {
  const auto colon = part.find(':');
  if (colon == std::string_view::npos) not_heads(text, part);
  const std::string_view kind = part.substr(0, colon), sizes = part.substr(colon + 1);
  const auto cross = sizes.find('x');
  const auto count = positive(sizes.substr(0, cross));
  const auto width = cross == std::string_view::npos ? std::optional<std::int64_t>(0)
                                                     : positive(sizes.substr(cross + 1));
  if (!count || !width) not_heads(text, part);
  for (std::size_t i = 0; i < kind_names.size(); ++i) {
    if (kind_names[i] == kind) return {static_cast<HeadKind>(i), *count, *width};
  }
  not_heads(text, part);
}

}  // namespace

std::string_view name_of(HeadKind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

HeadList parse_heads(std::string_view text, std::int64_t width) {
  HeadList heads;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    heads.push_back(parse_group(text, text.substr(begin, end - begin)));
    begin = end + 1;
  }
  std::int64_t left = width, sharing = 0;
  for (const HeadGroup& group : heads) {
    left -= group.columns();
    if (group.width == 0) sharing += group.heads;
  }
  if (sharing == 0) return heads;
  LONGHAND_CHECK(left > 0 && left % sharing == 0, "heads ", quote(text), ": expected ", sharing,
                 " heads to share the width evenly, got ", left, " of ", width, " left for them");
  for (HeadGroup& group : heads) {
    if (group.width == 0) group.width = left / sharing;
  }
  return heads;
}

std::string text_of(const HeadList& heads) {
  std::string all;
  for (const HeadGroup& group : heads) {
    if (!all.empty()) all += ',';
    all += text(name_of(group.kind), ':', group.heads, 'x', group.width);
  }
  return all;
}

std::vector<HeadList> parse_layers(std::string_view text, std::int64_t width) {
  std::vector<HeadList> layers;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    layers.push_back(parse_heads(text.substr(begin, end - begin), width));
    begin = end + 1;
  }
  return layers;
}

std::string text_of(const std::vector<HeadList>& layers) {
  std::string all;
  for (const HeadList& heads : layers) {
    if (!all.empty()) all += ';';
    all += text_of(heads);
  }
  return all;
}

std::int64_t columns(const HeadList& heads) {
  std::int64_t sum = 0;
  for (const HeadGroup& group : heads) sum += group.columns();
  return sum;
}

std::int64_t chacal_columns(const HeadList& heads) {
  std::int64_t sum = 0;
  for (const HeadGroup& group : heads) {
    if (group.kind == HeadKind::chacal) sum += group.columns();
  }
  return sum;
}

std::int64_t chacal_heads(const HeadList& heads) {
  std::int64_t sum = 0;
  for (const HeadGroup& group : heads) {
    if (group.kind == HeadKind::chacal) sum += group.heads;
  }
  return sum;
}

ScoreVars scores_of(HeadKind kind, const HeadVars& q, const HeadVars& k, const Segments& queries,
                    const Segments& keys, const HeadOptions& options) {
  return {.q = q,
          .k = k,
          .queries = queries,
          .keys = keys,
          .scale = options.scale,
          .temper = options.temper,
          .beta = options.beta,
          .window = kind == HeadKind::softmax ? options.window : 0};
}

std::vector<HeadPlace> places(const HeadList& heads) {
  std::vector<HeadPlace> all;
  std::int64_t output = 0;
  for (const HeadGroup& group : heads) {
    all.push_back({group, 3 * output, output});
    output += group.columns();
  }
  return all;
}

namespace {

/// One pass of a layer's heads over a projection, group after group.
class Pass {
 public:
  Pass(const Var& qkv, const HeadList& heads, const Segments& segments, const CachedHeads& cached,
       const HeadOptions& options)
      : qkv_(qkv),
        stored_(cached.data),
        segments_(segments),
        cached_(cached),
        options_(options),
        y_(qkv.backend(), {qkv.value().rows(), columns(heads)}, qkv.value().dtype()) {
    const Tensor& x = qkv.value();
    if (chacal_columns(heads) > 0 && !options_.gamma) {
      options_.gamma =
          Tensor::from(x.backend(), {1}, master_type(x.dtype()), std::vector<double>{0.9});
    }
  }

  const Tensor& y() const { return y_; }

  HeadsBackward run(const HeadPlace& place, Tensor& match) {
    const auto [kind, count, width] = place.group;
    const std::int64_t keys =
        cached_.data ? 2 * place.output : place.projection + place.group.columns();
    const Var& from = cached_.data ? stored_ : qkv_;
    const HeadVars q{qkv_, place.projection, count, width};
    const HeadVars k{from, keys, count, width};
    const HeadVars v{from, keys + place.group.columns(), count, width};
    const Heads out{y_, place.output, count, width};
    const ScoreVars scores = scores_of(kind, q, k, segments_, cached_.segments, options_);
    switch (kind) {
      case HeadKind::fal:
        match = Tensor(y_.backend(), {y_.rows(), count}, DType::i32);
        return fal_into({.q = q, .k = k, .v = v, .queries = segments_, .keys = cached_.segments},
                        out, match);
      case HeadKind::chacal:
        return chained(scores, v, out);
      default:
        return attention_into(scores, v, out);
    }
  }

 private:
  HeadsBackward chained(const ScoreVars& scores, const HeadVars& v, const Heads& out) {
    Var gamma = options_.gamma;
    if (gamma.value().size() > 1) gamma = slice(gamma, chacal_heads_, out.heads);
    const Heads earlier{cached_.outputs, chacal_column_, out.heads, out.width};
    chacal_heads_ += out.heads;
    chacal_column_ += out.heads * out.width;
    HeadsBackward backward = chacal_into(scores, v, gamma, out, earlier);
    if (earlier) {
      y_.backend()(Append{.x = out, .from = segments_, .y = earlier, .to = cached_.segments});
    }
    return backward;
  }

  const Var& qkv_;
  Var stored_;
  const Segments& segments_;
  const CachedHeads& cached_;
  HeadOptions options_;
  Tensor y_;
  std::int64_t chacal_heads_ = 0, chacal_column_ = 0;  // of the ChaCAL groups before
};

}  // namespace

Var mixed_attention(const Var& qkv, const HeadList& heads, const Segments& segments,
                    const CachedHeads& cached, std::vector<Tensor>* matches,
                    const HeadOptions& options) {
  LONGHAND_CHECK(!cached.data || cached.outputs || chacal_columns(heads) == 0,
                 "mixed_attention: ChaCAL heads read a cache of outputs, got none");
  const std::vector<HeadPlace> all = places(heads);
  Pass pass(qkv, heads, segments, cached, options);
  std::vector<HeadsBackward> backward;
  for (const HeadPlace& place : all) {
    Tensor match;
    backward.push_back(pass.run(place, match));
    if (matches) matches->push_back(match);
  }
  return record("mixed_attention", {&qkv, &options.gamma, &options.beta}, pass.y(),
                [backward = std::move(backward), all, dqkv = qkv.sink()](const Tensor& dy) {
                  // The groups cover all columns of the projection.
                  const bool assign = dqkv && !dqkv.target().add;
                  for (std::size_t i = 0; i < all.size(); ++i) {
                    const auto& [group, projection, output] = all[i];
                    if (backward[i]) backward[i]({dy, output, group.heads, group.width}, assign);
                  }
                });
}

}  // namespace longhand::nn
