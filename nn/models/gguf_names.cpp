#include "nn/models/gguf_names.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/error.h"

namespace longhand::nn {
namespace {

// Hugging Face's name of a tensor, and GGUF's name of the same tensor.
using NamePair = std::pair<std::string_view, std::string_view>;

constexpr std::array<NamePair, 13> llama_parts{{
    {"input_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"post_attention_layernorm", "ffn_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
}};
constexpr std::array<NamePair, 6> gpt2_parts{{{"ln_1", "attn_norm"},
                                              {"attn.c_attn", "attn_qkv"},
                                              {"attn.c_proj", "attn_output"},
                                              {"ln_2", "ffn_norm"},
                                              {"mlp.c_fc", "ffn_up"},
                                              {"mlp.c_proj", "ffn_down"}}};
constexpr std::array<NamePair, 3> llama_whole{{{"model.embed_tokens.weight", "token_embd.weight"},
                                               {"model.norm.weight", "output_norm.weight"},
                                               {"lm_head.weight", "output.weight"}}};
constexpr std::array<NamePair, 5> gpt2_whole{{{"transformer.wte.weight", "token_embd.weight"},
                                              {"transformer.wpe.weight", "position_embd.weight"},
                                              {"transformer.ln_f.weight", "output_norm.weight"},
                                              {"transformer.ln_f.bias", "output_norm.bias"},
                                              {"lm_head.weight", "output.weight"}}};

constexpr std::array<std::pair<std::string_view, GgufKind>, 4> kinds{{{"llama", GgufKind::llama},
                                                                      {"qwen2", GgufKind::qwen2},
                                                                      {"gemma3", GgufKind::gemma3},
                                                                      {"gpt2", GgufKind::gpt2}}};

/// GGUF's name for a name of Hugging Face; empty if the list does not contain it.
std::string_view paired_name(std::span<const NamePair> names, std::string_view theirs) {
  const auto found = std::ranges::find(names, theirs, &NamePair::first);
  return found == names.end() ? std::string_view() : found->second;
}

}  // namespace

std::optional<GgufKind> gguf_kind(std::string_view architecture) {
  for (const auto& [name, kind] : kinds) {
    if (name == architecture) return kind;
  }
  return std::nullopt;
}

std::string_view architecture_of(GgufKind kind) {
  return kinds[static_cast<std::size_t>(kind)].first;
}

std::optional<GgufTensorName> gguf_tensor_name(std::string_view theirs, GgufKind kind) {
  const bool gpt2 = kind == GgufKind::gpt2, gemma = kind == GgufKind::gemma3;
  const std::string_view whole =
      paired_name(gpt2 ? std::span<const NamePair>(gpt2_whole) : llama_whole, theirs);
  if (!whole.empty()) {
    return GgufTensorName{.name = std::string(whole),
                          .plus_one = gemma && whole == "output_norm.weight"};
  }
  const std::string_view layers = gpt2 ? "transformer.h." : "model.layers.";
  if (!theirs.starts_with(layers)) return std::nullopt;
  theirs.remove_prefix(layers.size());
  const std::size_t dot = theirs.find('.'), kind_dot = theirs.rfind('.');
  if (dot == std::string_view::npos || kind_dot <= dot) return std::nullopt;
  const std::string_view layer = theirs.substr(0, dot), of = theirs.substr(kind_dot);
  const std::string_view part = theirs.substr(dot + 1, kind_dot - dot - 1);
  std::string_view here =
      paired_name(gpt2 ? std::span<const NamePair>(gpt2_parts) : llama_parts, part);
  if (here.empty()) return std::nullopt;
  if (gemma && part == "post_attention_layernorm") here = "post_attention_norm";
  return GgufTensorName{.name = text("blk.", layer, '.', here, of),
                        .paired = kind == GgufKind::llama && (here == "attn_q" || here == "attn_k"),
                        .plus_one = gemma && here.ends_with("norm"),
                        .transposed = gpt2 && of == ".weight" && !here.ends_with("norm")};
}

}  // namespace longhand::nn
