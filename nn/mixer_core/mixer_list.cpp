#include "nn/mixer_core/mixer_list.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/error.h"
#include "core/quote.h"

namespace longhand::nn {
namespace {

bool is_count(std::string_view part) {
  return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
}

[[noreturn]] void not_heads(std::string_view text, std::string_view part) {
  fail(
      "heads ", quote(text),
      ": expected a comma-separated list of KIND:COUNT or KIND:COUNTxWIDTH, where "
      "COUNT/KEYS sets a smaller number of key heads and KIND is ",
      kind_names(), ", got ", quote(part),
      is_count(part) ? longhand::text("; for ", part, " softmax heads, write softmax:", part) : "");
}

std::optional<std::int64_t> positive(std::string_view digits) {
  std::int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stop != end || value < 1 || value > 1'000'000) return std::nullopt;
  return value;
}

/// Splits a text at separators that are not within braces.
std::vector<std::string_view> cut(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
    if (text[i] == separator && depth == 0) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(text.substr(begin));
  return parts;
}

Options declared(Mixer& mixer) {
  Options options;
  mixer.declare(options);
  return options;
}

void assign_those_it_has(Mixer& mixer, const MixerOptions& given) {
  const Options options = declared(mixer);
  for (const auto& [name, value] : given) {
    if (const BoundOption* const option = options.find(name)) option->assign(value);
  }
}

/// Parses "name=value,..." into the mixer's options.
void assign(Mixer& mixer, std::string_view text, std::string_view settings) {
  const Options options = declared(mixer);
  for (const std::string_view setting : cut(settings, ',')) {
    const auto equals = setting.find('=');
    if (equals == std::string_view::npos) not_heads(text, settings);
    const std::string_view name = setting.substr(0, equals);
    const BoundOption* const option = options.find(name);
    LONGHAND_CHECK(option, "heads ", quote(text), ": ", mixer.kind(), " has no option ",
                   quote(name));
    option->assign(setting.substr(equals + 1));
  }
}

/// The kind of mixer with this name; null if there is none.
const MixerKind* find_kind(std::string_view name) {
  for (const MixerKind* const kind : mixer_kinds()) {
    if (kind->name == name) return kind;
  }
  return nullptr;
}

/// Parses one group of heads, such as "softmax:8/2x64". If `part` contains no width, the width of
/// the result is 0.
AnyMixer parse_mixer(std::string_view text, std::string_view part, const MixerOptions& given) {
  const auto colon = part.find(':');
  if (colon == std::string_view::npos) not_heads(text, part);
  const std::string_view name = part.substr(0, colon);
  std::string_view sizes = part.substr(colon + 1), settings;
  if (const auto brace = sizes.find('{'); brace != std::string_view::npos) {
    if (sizes.back() != '}') not_heads(text, part);
    settings = sizes.substr(brace + 1, sizes.size() - brace - 2);
    sizes = sizes.substr(0, brace);
  }
  const auto cross = sizes.find('x');
  const std::string_view counts = sizes.substr(0, cross);
  const auto slash = counts.find('/');
  const auto count = positive(counts.substr(0, slash));
  const auto keys = slash == std::string_view::npos ? count : positive(counts.substr(slash + 1));
  const auto width = cross == std::string_view::npos ? std::optional<std::int64_t>(0)
                                                     : positive(sizes.substr(cross + 1));
  if (!count || !keys || !width) not_heads(text, part);
  const MixerKind* const kind = find_kind(name);
  if (!kind) not_heads(text, part);
  AnyMixer mixer = kind->make();
  mixer->heads = *count;
  mixer->key_heads = *keys;
  mixer->width = *width;
  LONGHAND_CHECK(*count % *keys == 0, "heads ", quote(text),
                 ": expected a number of key heads that divides ", *count,
                 ", the number of heads, got ", *keys);
  assign_those_it_has(*mixer, given);
  if (!settings.empty()) assign(*mixer, text, settings);
  return mixer;
}

/// A default-constructed mixer of the same kind.
AnyMixer fresh(const Mixer& mixer) { return find_kind(mixer.kind())->make(); }

}  // namespace

std::string kind_names() {
  std::vector<std::string_view> names;
  for (const MixerKind* const kind : mixer_kinds()) names.push_back(kind->name);
  return listed(names);
}

MixerList parse_mixers(std::string_view text, std::int64_t width, const MixerOptions& options) {
  MixerList mixers;
  for (const std::string_view part : cut(text, ',')) {
    mixers.push_back(parse_mixer(text, part, options));
  }
  std::int64_t left = width, sharing = 0;
  for (const AnyMixer& mixer : mixers) {
    left -= mixer->heads * mixer->width;
    if (mixer->width == 0) sharing += mixer->heads;
  }
  if (sharing > 0) {
    LONGHAND_CHECK(left > 0 && left % sharing == 0, "heads ", quote(text),
                   ": columns for the heads without a width: expected a positive multiple of ",
                   sharing, ", the number of these heads, got ", left, " of the model's ", width,
                   " columns");
    for (const AnyMixer& mixer : mixers) {
      if (mixer->width == 0) mixer->width = left / sharing;
    }
  }
  return mixers;
}

std::vector<MixerList> parse_layers(std::string_view text, std::int64_t width,
                                    const MixerOptions& options) {
  std::vector<MixerList> layers;
  for (const std::string_view part : cut(text, ';')) {
    layers.push_back(parse_mixers(part, width, options));
  }
  return layers;
}

std::string text_of(const MixerList& mixers, const MixerOptions& defaults) {
  std::string all;
  for (const AnyMixer& mixer : mixers) {
    if (!all.empty()) all += ',';
    all += text(mixer->kind(), ':', mixer->heads);
    if (mixer->key_heads != mixer->heads) all += text('/', mixer->key_heads);
    all += text('x', mixer->width);
    const AnyMixer plain = fresh(*mixer);
    assign_those_it_has(*plain, defaults);
    const Options expected = declared(*plain), options = declared(*mixer);
    std::string settings;
    for (const BoundOption& option : options.all()) {
      const std::string value = option.text();
      if (value == expected.find(option.name)->text()) continue;
      settings += text(settings.empty() ? "{" : ",", option.name, '=', value);
    }
    if (!settings.empty()) all += settings + '}';
  }
  return all;
}

std::string text_of(const std::vector<MixerList>& layers, const MixerOptions& defaults) {
  std::vector<std::string> texts;
  for (const MixerList& mixers : layers) texts.push_back(text_of(mixers, defaults));
  if (std::ranges::adjacent_find(texts, std::ranges::not_equal_to{}) == texts.end()) {
    // all layers have the same list, so it is written once
    return texts.empty() ? "" : texts.front();
  }
  std::string all;
  for (const std::string& one : texts) all += (all.empty() ? "" : ";") + one;
  return all;
}

void check_options(const MixerOptions& given) {
  for (const MixerKind* const kind : mixer_kinds()) {
    const AnyMixer mixer = kind->make();
    assign_those_it_has(*mixer, given);
    mixer->check();
  }
}

MixerOptions options_of(const MixerList& mixers) {
  MixerOptions all;
  for (const AnyMixer& mixer : mixers) {
    const Options options = declared(*mixer);
    for (const BoundOption& option : options.all()) {
      all.emplace(option.name, option.text());
    }
  }
  return all;
}

void set_option(std::vector<MixerList>& layers, std::string_view name, std::string_view value) {
  for (const MixerList& mixers : layers) {
    for (const AnyMixer& mixer : mixers) {
      const Options options = declared(*mixer);
      if (const BoundOption* const option = options.find(name)) option->assign(value);
    }
  }
}

std::int64_t columns(const MixerList& mixers) {
  std::int64_t sum = 0;
  for (const AnyMixer& mixer : mixers) sum += mixer->columns();
  return sum;
}

std::int64_t projection_columns(const MixerList& mixers) {
  std::int64_t sum = 0;
  for (const AnyMixer& mixer : mixers) sum += mixer->projection_columns();
  return sum;
}

std::vector<MixerPlace> places(const MixerList& mixers) {
  std::map<std::string_view, std::int64_t> counts;
  for (const AnyMixer& mixer : mixers) counts[mixer->kind()] += mixer->heads;
  std::map<std::string_view, std::int64_t> before;
  std::vector<MixerPlace> all;
  MixerPlace next;
  for (const AnyMixer& mixer : mixers) {
    next.heads_before = before[mixer->kind()];
    next.heads_alike = counts[mixer->kind()];
    all.push_back(next);
    ++next.index;
    next.projection += mixer->projection_columns();
    next.output += mixer->columns();
    before[mixer->kind()] += mixer->heads;
  }
  return all;
}

bool has_kind(const std::vector<MixerList>& layers, std::string_view kind) {
  return std::ranges::any_of(layers, [&](const MixerList& mixers) {
    return std::ranges::any_of(mixers, [&](const AnyMixer& m) { return m->kind() == kind; });
  });
}

std::vector<OptionSpec> all_mixer_options() {
  std::vector<OptionSpec> all;
  for (const MixerKind* const kind : mixer_kinds()) {
    const AnyMixer mixer = kind->make();
    const Options options = declared(*mixer);
    for (const OptionSpec& option : options.all()) {
      if (std::ranges::find(all, option.name, &OptionSpec::name) == all.end()) {
        all.push_back(option);
      }
    }
  }
  return all;
}

}  // namespace longhand::nn
