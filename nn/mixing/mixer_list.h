#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "nn/mixing/mixer.h"

namespace longhand::nn {

/// The mixers of a layer. The columns of the layer's projection and output are those of the first
/// mixer, then those of the second, and so on.
using MixerList = std::vector<AnyMixer>;

/// Options by name. An option applies to every mixer that has it.
using MixerOptions = std::map<std::string, std::string, std::less<>>;

/// Parses a list of heads. "softmax:3,fal:1": the heads share `width` evenly.
/// "softmax:1x704,fal:1x64": heads with a given width; heads without a width share the rest.
/// "softmax:8/2": 8 query heads with 2 key heads. "softmax:4{window=16,beta=2}": options of this
/// group.
MixerList parse_mixers(std::string_view text, std::int64_t width, const MixerOptions& options = {});
/// Parses the lists of all layers, the first layer first: "softmax:8;chacal:8".
std::vector<MixerList> parse_layers(std::string_view text, std::int64_t width,
                                    const MixerOptions& options = {});
/// The list as text with all widths. It contains the options that differ from `defaults` or from
/// their initial values.
std::string text_of(const MixerList& mixers, const MixerOptions& defaults = {});
std::string text_of(const std::vector<MixerList>& layers, const MixerOptions& defaults = {});

/// The names of all kinds: "biased, chacal, ... or softmax".
std::string kind_names();
/// Throws an Error if an option has an invalid value, even if no mixer of the model has the option.
void check_options(const MixerOptions& options);
/// The options of these mixers. If several mixers have the same option, the value of the first one.
MixerOptions options_of(const MixerList& mixers);
/// Sets an option of every mixer that has it.
void set_option(std::vector<MixerList>& layers, std::string_view name, std::string_view value);

std::int64_t columns(const MixerList& mixers);  // number of columns of the layer's output
/// Number of columns of the layer's projection.
std::int64_t projection_columns(const MixerList& mixers);
std::vector<MixerPlace> places(const MixerList& mixers);
bool has_kind(const std::vector<MixerList>& layers, std::string_view kind);

/// The options of all kinds of mixers, with their defaults. Each name occurs once.
std::vector<OptionSpec> all_mixer_options();

}  // namespace longhand::nn
