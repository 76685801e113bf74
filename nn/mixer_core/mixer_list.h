#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "nn/mixer_core/mixer.h"

namespace longhand::nn {

/// The mixers (groups of heads) of a layer. Each mixer has its own columns in the layer's
/// projection and output, in the order of this list.
using MixerList = std::vector<AnyMixer>;

/// Values of options by name. An option applies to every mixer that has an option of this name.
using MixerOptions = std::map<std::string, std::string, std::less<>>;

/// Parses a list of heads. In "softmax:3,fal:1", the four heads share `width` evenly. In
/// "softmax:1x704,fal:1", the softmax head has width 704, and heads without a given width share the
/// remaining width. "softmax:8/2" has 8 query heads and 2 key heads. "softmax:4{window=16,beta=2}"
/// sets options of these 4 heads.
MixerList parse_mixers(std::string_view text, std::int64_t width, const MixerOptions& options = {});
/// Parses the lists of all layers, the first layer first: "softmax:8;chacal:8".
std::vector<MixerList> parse_layers(std::string_view text, std::int64_t width,
                                    const MixerOptions& options = {});
/// Returns the mixers as text, with the widths of all heads. The text contains each option whose
/// value differs from its value in `defaults`. For an option that is not in `defaults`, the
/// option's initial value is the default.
std::string text_of(const MixerList& mixers, const MixerOptions& defaults = {});
std::string text_of(const std::vector<MixerList>& layers, const MixerOptions& defaults = {});

/// The names of all kinds of mixers, as the text "alibi, biased, ... or tra".
std::string kind_names();
/// Throws an Error if a value is invalid for any kind of mixer, including kinds that the model does
/// not use.
void check_options(const MixerOptions& options);
/// All options of these mixers. If several mixers have the same option, the first of them
/// determines its value.
MixerOptions options_of(const MixerList& mixers);
/// Sets the option `name` to `value` in every mixer that has this option.
void set_option(std::vector<MixerList>& layers, std::string_view name, std::string_view value);

std::int64_t columns(const MixerList& mixers);  // number of columns of the layer's output
/// Number of columns of the layer's projection.
std::int64_t projection_columns(const MixerList& mixers);
std::vector<MixerPlace> places(const MixerList& mixers);
bool has_kind(const std::vector<MixerList>& layers, std::string_view kind);

/// The options of all kinds of mixers, with their defaults. Each name occurs once.
std::vector<OptionSpec> all_mixer_options();

}  // namespace longhand::nn
