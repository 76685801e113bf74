#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "nn/mixing/mixer.h"

namespace longhand::nn {

/// The mixers of a layer. Its projection has the columns of each in turn, and so has its output.
using MixerList = std::vector<AnyMixer>;

/// Options by name, for every mixer that has them.
using MixerOptions = std::map<std::string, std::string, std::less<>>;

/// "softmax:3,fal:1": heads that share `width` evenly; "softmax:1x704,fal:1x64": with a width of
/// their own. Heads without one share what the others leave. "softmax:8/2": 8 query heads that read
/// 2 key heads. "softmax:4{window=16,beta=2}": with options of their own.
MixerList parse_mixers(std::string_view text, std::int64_t width, const MixerOptions& options = {});
/// "softmax:8;chacal:8": lists of layers, from the first on.
std::vector<MixerList> parse_layers(std::string_view text, std::int64_t width,
                                    const MixerOptions& options = {});
/// Every width written out, and options that are not `otherwise`, or else not the default.
std::string text_of(const MixerList& mixers, const MixerOptions& otherwise = {});
std::string text_of(const std::vector<MixerList>& layers, const MixerOptions& otherwise = {});

/// "biased, chacal, ... or softmax"
std::string kind_names();
/// An Error where an option has no such value, whether the model has a mixer for it or not.
void check_options(const MixerOptions& options);
/// The options of these mixers; of several mixers' the first one's.
MixerOptions options_of(const MixerList& mixers);
/// Sets an option of every mixer that has it.
void set_option(std::vector<MixerList>& layers, std::string_view name, std::string_view value);

std::int64_t columns(const MixerList& mixers);             // of the layer's output
std::int64_t projection_columns(const MixerList& mixers);  // of its projection
std::vector<MixerPlace> places(const MixerList& mixers);
bool has_kind(const std::vector<MixerList>& layers, std::string_view kind);

/// The options of all kinds of mixers with their defaults, each name once.
struct MixerOption {
  std::string name, placeholder, meaning, otherwise;
};
std::vector<MixerOption> all_mixer_options();

}  // namespace longhand::nn
