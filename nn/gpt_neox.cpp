#include "nn/gpt_neox.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/quote.h"

namespace fs = std::filesystem;

namespace longhand::nn {
namespace {

using Json = nlohmann::json;

const std::map<std::string, Activation, std::less<>> activations{
    {"gelu", Activation::gelu},           {"gelu_new", Activation::gelu_tanh},
    {"gelu_fast", Activation::gelu_tanh}, {"gelu_pytorch_tanh", Activation::gelu_tanh},
    {"relu", Activation::relu},           {"silu", Activation::silu}};

/// Fields of a configuration, each refused in one line where it is of another kind.
class Fields {
 public:
  Fields(const Json& object, std::string_view source) : object_(object), source_(source) {
    LONGHAND_CHECK(object.is_object(), source, ": expected a JSON object");
  }

  std::int64_t size(const char* key) const {
    const Json* const value = find(key);
    LONGHAND_CHECK(value && value->is_number_integer() && value->get<double>() >= 1 &&
                       value->get<double>() <= 1e9,
                   source_, ": ", key, ": expected an integer from 1 to 1e9, got ", shown(value));
    return value->get<std::int64_t>();
  }
  std::int64_t size(const char* key, std::int64_t otherwise) const {
    return find(key) ? size(key) : otherwise;
  }
  double number(const char* key, double otherwise) const {
    const Json* const value = find(key);
    LONGHAND_CHECK(!value || value->is_number(), source_, ": ", key, ": expected a number, got ",
                   shown(value));
    return value ? value->get<double>() : otherwise;
  }
  bool flag(const char* key, bool otherwise) const {
    const Json* const value = find(key);
    LONGHAND_CHECK(!value || value->is_boolean(), source_, ": ", key,
                   ": expected true or false, got ", shown(value));
    return value ? value->get<bool>() : otherwise;
  }
  std::string word(const char* key, const char* otherwise) const {
    const Json* const value = find(key);
    LONGHAND_CHECK(!value || value->is_string(), source_, ": ", key, ": expected a text, got ",
                   shown(value));
    return value ? value->get<std::string>() : otherwise;
  }
  const Json* find(const char* key) const {  // null where there is none, or JSON's null
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

 private:
  static std::string shown(const Json* value) { return value ? quote(value->dump()) : "none"; }

  const Json& object_;
  std::string_view source_;
};

Json parsed(std::string_view json, std::string_view source) {
  Json object = Json::parse(json, nullptr, false);
  LONGHAND_CHECK(!object.is_discarded(), source, ": expected JSON, got something else");
  return object;
}

/// The one group of softmax heads that make up the width.
HeadGroup only_group(const DecoderConfig& config) {
  const HeadList& heads = config.heads.front();
  for (const HeadList& list : config.heads) {
    LONGHAND_CHECK(list == heads, "gpt_neox: expected the same heads in all layers, got ",
                   text_of(config.heads));
  }
  HeadGroup all{HeadKind::softmax, 0, heads.front().width};
  for (const HeadGroup& group : heads) {
    LONGHAND_CHECK(group.kind == HeadKind::softmax && group.width == all.width,
                   "gpt_neox: expected softmax heads of one width, got ", text_of(config.heads),
                   "; Hugging Face's GPT-NeoX has no other");
    all.heads += group.heads;
  }
  LONGHAND_CHECK(all.columns() == config.width, "gpt_neox: expected heads that make up the width ",
                 config.width, ", got ", text_of(config.heads));
  return all;
}

bool is_projection(std::string_view name) {
  return name.find("query_key_value") != std::string_view::npos;
}

/// A tensor's numbers as f64, whatever float type the file has.
std::vector<double> numbers(const SafetensorsEntry& entry, std::string_view file) {
  std::vector<double> values(static_cast<std::size_t>(entry.shape.size()));
  LONGHAND_CHECK(entry.dtype && is_float(*entry.dtype), file, ": tensor ", quote(entry.name),
                 ": expected F32, F64 or BF16, got ", entry.type);
  const auto read = [&]<class T>(T) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      T x;
      std::memcpy(&x, entry.bytes.data() + i * sizeof(T), sizeof(T));
      if constexpr (std::is_same_v<T, bf16>) {
        values[i] = static_cast<float>(x);
      } else {
        values[i] = static_cast<double>(x);
      }
    }
  };
  visit_dtype(*entry.dtype, read);
  return values;
}

const SafetensorsEntry& entry_of(const SafetensorsFile& file, const std::string& name) {
  if (name == "embed_out.weight" && !file.find(name) && file.find("lm_head.weight")) {
    return file.at("lm_head.weight");
  }
  return file.at(name);
}

}  // namespace

std::vector<std::int64_t> gpt_neox_rows(const HeadList& heads) {
  std::vector<std::int64_t> rows;
  std::int64_t first_head = 0;
  for (const HeadGroup& group : heads) {
    for (std::int64_t part = 0; part < 3; ++part) {
      for (std::int64_t head = 0; head < group.heads; ++head) {
        for (std::int64_t i = 0; i < group.width; ++i) {
          rows.push_back(((first_head + head) * 3 + part) * group.width + i);
        }
      }
    }
    first_head += group.heads;
  }
  return rows;
}

DecoderConfig gpt_neox_config(std::string_view json, std::string_view source) {
  const Json object = parsed(json, source);
  const Fields fields(object, source);
  const std::string type = fields.word("model_type", "");
  LONGHAND_CHECK(type == "gpt_neox", source, ": model_type: expected gpt_neox, got ", quote(type));
  LONGHAND_CHECK(!fields.flag("tie_word_embeddings", false), source,
                 ": tie_word_embeddings: expected false, got true");
  LONGHAND_CHECK(!fields.find("rope_scaling"), source, ": rope_scaling: expected none, got ",
                 quote(object["rope_scaling"].dump()));

  DecoderConfig config;
  config.vocabulary = fields.size("vocab_size");
  config.width = fields.size("hidden_size");
  config.layers = fields.size("num_hidden_layers");
  config.inner = fields.size("intermediate_size");
  const std::int64_t heads = fields.size("num_attention_heads");
  LONGHAND_CHECK(config.width % heads == 0, source, ": num_attention_heads: expected a divisor of ",
                 config.width, " (hidden_size), got ", heads);
  config.heads = {{{HeadKind::softmax, heads, config.width / heads}}};
  config.longest = fields.size("max_position_embeddings", 2048);
  config.order = fields.flag("use_parallel_residual", true) ? Order::parallel : Order::sequential;
  config.attention_bias = fields.flag("attention_bias", true);
  config.epsilon = fields.number("layer_norm_eps", 1e-5);
  config.deviation = fields.number("initializer_range", 0.02);
  const std::string f = fields.word("hidden_act", "gelu");
  const auto found = activations.find(f);
  LONGHAND_CHECK(found != activations.end(), source, ": hidden_act: expected gelu, gelu_new, ",
                 "gelu_fast, gelu_pytorch_tanh, relu or silu, got ", quote(f));
  config.activation = found->second;
  config.rope_base = fields.number("rotary_emb_base", 10000);
  config.rope_share = fields.number("rotary_pct", 0.25);
  if (const Json* const rope = fields.find("rope_parameters")) {
    const Fields inner(*rope, source);
    const std::string kind = inner.word("rope_type", "default");
    LONGHAND_CHECK(kind == "default", source, ": rope_type: expected default, got ", quote(kind));
    config.rope_base = inner.number("rope_theta", config.rope_base);
    config.rope_share = inner.number("partial_rotary_factor", config.rope_share);
  }
  LONGHAND_CHECK(config.rope_share >= 0 && config.rope_share <= 1 && config.rope_base > 0, source,
                 ": expected a rotary share from 0 to 1 and a base above 0, got ",
                 config.rope_share, " and ", config.rope_base);
  return config;
}

std::string gpt_neox_json(const DecoderConfig& config) {
  const HeadGroup heads = only_group(config);
  LONGHAND_CHECK(config.outputs == std::vector{config.vocabulary},
                 "gpt_neox: expected one output layer over the vocabulary, got ",
                 config.outputs.size());
  std::string f;
  for (const auto& [name, activation] : activations) {
    if (f.empty() && activation == config.activation) f = name;
  }
  LONGHAND_CHECK(!f.empty(), "gpt_neox: activation ", name_of(config.activation),
                 " has no name there");
  const nlohmann::ordered_json object{{"architectures", {"GPTNeoXForCausalLM"}},
                                      {"model_type", "gpt_neox"},
                                      {"vocab_size", config.vocabulary},
                                      {"hidden_size", config.width},
                                      {"num_hidden_layers", config.layers},
                                      {"num_attention_heads", heads.heads},
                                      {"intermediate_size", config.inner},
                                      {"hidden_act", f == "gelu_fast" ? "gelu_new" : f},
                                      {"max_position_embeddings", config.longest},
                                      {"initializer_range", config.deviation},
                                      {"layer_norm_eps", config.epsilon},
                                      {"use_parallel_residual", config.order == Order::parallel},
                                      {"attention_bias", config.attention_bias},
                                      {"attention_dropout", 0.0},
                                      {"hidden_dropout", 0.0},
                                      {"rotary_emb_base", config.rope_base},  // older readers
                                      {"rotary_pct", config.rope_share},
                                      {"rope_parameters",
                                       {{"rope_type", "default"},
                                        {"rope_theta", config.rope_base},
                                        {"partial_rotary_factor", config.rope_share}}},
                                      {"tie_word_embeddings", false},
                                      {"bos_token_id", nullptr},
                                      {"eos_token_id", nullptr},
                                      {"torch_dtype", "float32"}};
  return object.dump(2) + "\n";
}

void read_gpt_neox(const SafetensorsFile& file, const Decoder& decoder) {
  only_group(decoder.config());
  const auto rows = gpt_neox_rows(decoder.config().heads.front());
  for (const Parameter& p : decoder.parameters().all()) {  // all of them, before any is changed
    const SafetensorsEntry& entry = entry_of(file, p.name());
    LONGHAND_CHECK(entry.shape == p.value().shape(), file.name(), ": tensor ", quote(entry.name),
                   ": expected ", p.value().shape(), ", got ", entry.shape);
  }
  for (const Parameter& p : decoder.parameters().all()) {
    std::vector<double> values = numbers(entry_of(file, p.name()), file.name());
    if (is_projection(p.name())) {
      const auto width = static_cast<std::size_t>(p.value().size()) / rows.size();
      std::vector<double> ours(values.size());
      for (std::size_t r = 0; r < rows.size(); ++r) {
        std::copy_n(values.begin() + rows[r] * static_cast<std::int64_t>(width), width,
                    ours.begin() + static_cast<std::int64_t>(r * width));
      }
      values = std::move(ours);
    }
    const Tensor host =
        Tensor::from(decoder.backend(), p.value().shape(), p.value().dtype(), values);
    decoder.backend()(Copy{.x = host, .y = p.value()});
  }
}

std::unique_ptr<Decoder> import_gpt_neox(const fs::path& folder, Backend& backend, DType type) {
  const fs::path path = folder / "config.json";
  std::ifstream stream(path, std::ios::binary);
  LONGHAND_CHECK(stream, path.string(), ": cannot be read");
  const std::string json{std::istreambuf_iterator<char>(stream), {}};
  DecoderConfig config = gpt_neox_config(json, path.string());
  const auto file = SafetensorsFile::open(folder / "model.safetensors");
  auto decoder = std::make_unique<Decoder>(backend, std::move(config), 0, type);
  read_gpt_neox(file, *decoder);
  return decoder;
}

void export_gpt_neox(const Decoder& decoder, const fs::path& folder) {
  const std::string json = gpt_neox_json(decoder.config());
  const auto rows = gpt_neox_rows(decoder.config().heads.front());
  std::error_code error;
  fs::create_directories(folder, error);
  LONGHAND_CHECK(!error, "cannot make ", folder.string(), ": ", error.message());

  std::vector<float> host;  // one tensor at a time
  std::vector<SafetensorsItem> items;
  for (const Parameter& p : decoder.parameters().all()) {
    const auto bytes = [&host, &rows, p]() -> std::span<const std::byte> {
      const std::vector<double> values = p.value().to_doubles();
      host.assign(values.begin(), values.end());
      if (is_projection(p.name())) {
        const std::size_t width = values.size() / rows.size();
        for (std::size_t i = 0; i < values.size(); ++i) {
          host[static_cast<std::size_t>(rows[i / width]) * width + i % width] =
              static_cast<float>(values[i]);
        }
      }
      return std::as_bytes(std::span(host));
    };
    items.push_back({p.name(), DType::f32, p.value().shape(), bytes});
  }
  write_safetensors(folder / "model.safetensors", items, {{"format", "pt"}});
  write_atomically(folder / "config.json", json);
}

}  // namespace longhand::nn
