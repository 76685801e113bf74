#include "nn/heads.h"

#include <array>
#include <charconv>
#include <optional>

#include "autograd/attention.h"
#include "autograd/fal.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "core/quote.h"

namespace longhand::nn {
namespace {

constexpr std::array<std::string_view, 2> kind_names{"softmax", "fal"};

[[noreturn]] void not_heads(std::string_view text, std::string_view part) {
  fail("heads ", quote(text),
       ": expected KIND:COUNT or KIND:COUNTxWIDTH with KIND softmax or fal, ",
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

std::int64_t columns(const HeadList& heads) {
  std::int64_t sum = 0;
  for (const HeadGroup& group : heads) sum += group.columns();
  return sum;
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

Var mixed_attention(const Var& qkv, const HeadList& heads, const Segments& segments,
                    const CachedHeads& cached, std::vector<Tensor>* matches) {
  const Tensor& x = qkv.value();
  const Tensor y(x.backend(), {x.rows(), columns(heads)}, x.dtype());
  const Var stored(cached.data);
  std::vector<HeadsBackward> backward;
  const std::vector<HeadPlace> all = places(heads);
  for (const HeadPlace& place : all) {
    const auto [kind, count, width] = place.group;
    const HeadVars q{qkv, place.projection, count, width};
    const std::int64_t keys =
        cached.data ? 2 * place.output : place.projection + place.group.columns();
    const Var& from = cached.data ? stored : qkv;
    const HeadVars k{from, keys, count, width};
    const HeadVars v{from, keys + place.group.columns(), count, width};
    const Heads out{y, place.output, count, width};
    Tensor match;
    if (kind == HeadKind::fal) {
      match = Tensor(x.backend(), {x.rows(), count}, DType::i32);
      backward.push_back(fal_into(
          {.q = q, .k = k, .v = v, .queries = segments, .keys = cached.segments}, out, match));
    } else {
      backward.push_back(
          attention_into({.q = q, .k = k, .queries = segments, .keys = cached.segments}, v, out));
    }
    if (matches) matches->push_back(match);
  }
  return record("mixed_attention", {&qkv}, y,
                [backward = std::move(backward), all](const Tensor& dy) {
                  for (std::size_t i = 0; i < all.size(); ++i) {
                    const auto& [group, projection, output] = all[i];
                    backward[i]({dy, output, group.heads, group.width});
                  }
                });
}

}  // namespace longhand::nn
