#include "nn/released_names.h"

#include <array>
#include <utility>

namespace longhand::nn {
namespace {

using Renamed =
    // The prefix of a parameter's name, and the prefix that the name had in version 0.1.
    std::pair<std::string_view, std::string_view>;

constexpr std::array<Renamed, 4> of_model{{{"embedding.", "gpt_neox.embed_in."},
                                           {"positions.", "gpt_neox.embed_positions."},
                                           {"final_norm.", "gpt_neox.final_layer_norm."},
                                           {"output.", "embed_out."}}};
constexpr std::array<Renamed, 7> of_block{{{"norm1.", "input_layernorm."},
                                           {"norm2.", "post_attention_layernorm."},
                                           {"mixing.projection.", "attention.query_key_value."},
                                           {"mixing.out.", "attention.dense."},
                                           {"mixing.", "attention."},
                                           {"feed_forward.up.", "mlp.dense_h_to_4h."},
                                           {"feed_forward.down.", "mlp.dense_4h_to_h."}}};
constexpr std::string_view blocks = "blocks.", layers = "gpt_neox.layers.";

template <std::size_t N>
std::string renamed(std::string_view name, const std::array<Renamed, N>& table) {
  for (const auto& [now, then] : table) {
    if (name.starts_with(now)) return std::string(then) + std::string(name.substr(now.size()));
  }
  return std::string(name);
}

}  // namespace

std::string released_name(std::string_view name) {
  if (!name.starts_with(blocks)) return renamed(name, of_model);
  const auto dot = name.find('.', blocks.size());
  if (dot == std::string_view::npos) return std::string(name);
  const std::string_view index = name.substr(blocks.size(), dot + 1 - blocks.size());
  const std::string part = renamed(name.substr(dot + 1), of_block);
  // A parameter without an entry in the table did not exist in version 0.1. It keeps its name.
  if (part == name.substr(dot + 1)) return std::string(name);
  return std::string(layers) + std::string(index) + part;
}

}  // namespace longhand::nn
