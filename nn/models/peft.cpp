#include "nn/models/peft.h"

#include <algorithm>
#include <set>

#include "core/atomic_file.h"
#include "core/error.h"

namespace fs = std::filesystem;

namespace longhand::nn {
namespace {

/// The published tensor that consists of exactly the rows to which the LoRA adapter is added.
/// Throws an Error if there is no such tensor.
const Exchange& whole_tensor(std::span<const Exchange> tensors, const Decoder::Adapter& adapter) {
  const Projected& part = adapter.lora.projected;
  const Exchange* holder = nullptr;
  for (const Exchange& tensor : tensors) {
    if (!(tensor.ours == adapter.weight)) continue;
    const std::int64_t count = tensor.count ? tensor.count : adapter.weight.shape().rows();
    if (tensor.first == part.first && count == part.count && tensor.rows.empty()) return tensor;
    if (tensor.first <= part.first && part.first < tensor.first + count) holder = &tensor;
  }
  LONGHAND_CHECK(holder, "adapter: Hugging Face's format has no tensor for ",
                 adapter.weight.name());
  fail("adapter: expected projections that are separate tensors, got ", part.name,
       ", which is a part of ", holder->names.front());
}

/// The published name of a tensor without its last component. For example,
/// model.layers.0.self_attn.q_proj.weight becomes model.layers.0.self_attn.q_proj.
std::string module_of(const Exchange& tensor) {
  const std::string& name = tensor.names.front();
  return name.substr(0, name.rfind('.'));
}

/// Returns the shortest suffix of `adapted`, the name of a module with an adapter, that is not a
/// suffix of any name in `others`. peft adapts every module whose name ends with a dot and this
/// suffix.
std::string target_of(const std::string& adapted, const std::set<std::string>& others) {
  for (std::size_t dot = adapted.rfind('.'); dot != std::string::npos && dot > 0;
       dot = adapted.rfind('.', dot - 1)) {
    const std::string_view ending = std::string_view(adapted).substr(dot);
    const auto has_ending = [&](const std::string& name) { return name.ends_with(ending); };
    if (std::ranges::none_of(others, has_ending)) return std::string(ending.substr(1));
  }
  return adapted;
}

}  // namespace

std::vector<Exchange> adapter_tensors(const Decoder& decoder) {
  const std::vector<Exchange> tensors = family_of(decoder.config()).tensors(decoder);
  std::vector<Exchange> all;
  for (const Decoder::Adapter& adapter : decoder.adapters()) {
    const std::string module = "base_model.model." + module_of(whole_tensor(tensors, adapter));
    all.push_back({adapter.lora.a, {module + ".lora_A.weight"}});
    all.push_back({adapter.lora.b, {module + ".lora_B.weight"}});
  }
  return all;
}

std::string_view export_adapter(const Decoder& decoder, const fs::path& folder) {
  const Family& family = family_of(decoder.config());
  const LoraOptions& lora = decoder.config().lora;
  LONGHAND_CHECK(!decoder.adapters().empty(),
                 "adapter: expected a model with LoRA adapters, got one without");
  const std::vector<Exchange> tensors = family.tensors(decoder);
  std::set<std::string> adapted, others, targets;
  bool transposed = false;
  for (const Decoder::Adapter& adapter : decoder.adapters()) {
    const Exchange& tensor = whole_tensor(tensors, adapter);
    adapted.insert(module_of(tensor));
    transposed = transposed || tensor.transposed;
  }
  for (const Exchange& tensor : tensors) {
    if (!adapted.contains(module_of(tensor))) others.insert(module_of(tensor));
  }
  for (const std::string& module : adapted) targets.insert(target_of(module, others));
  make_model_folder(folder, {"adapter_config.json", "adapter_model.safetensors"});
  write_tensors(folder, adapter_tensors(decoder), 0, "adapter_model");
  const Json config{{"peft_type", "LORA"},
                    {"task_type", "CAUSAL_LM"},
                    {"base_model_name_or_path", nullptr},
                    {"r", lora.rank},
                    {"lora_alpha", lora.scale() * static_cast<double>(lora.rank)},
                    {"target_modules", Json::Array(targets.begin(), targets.end())},
                    {"lora_dropout", 0.0},
                    {"bias", "none"},
                    {"fan_in_fan_out", transposed},
                    {"inference_mode", true}};
  write_atomically(folder / "adapter_config.json", config.dump(2) + "\n");
  return family.type;
}

}  // namespace longhand::nn
