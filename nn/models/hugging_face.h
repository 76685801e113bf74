#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "nn/mixers/softmax.h"
#include "nn/models/decoder.h"
#include "nn/models/weights.h"

/// Models in Hugging Face's form: a folder with config.json and model.safetensors, or with the
/// shards that model.safetensors.index.json names. What the families share; each has a file of its
/// own. Folders come from outside: whatever is wrong is told in one line, and no more memory is
/// taken than the folder's files have bytes for.
namespace longhand::nn {

/// Fields of a configuration, each refused in one line where it is of another kind.
class Fields {
 public:
  Fields(const Json& object, std::string_view source);

  std::string_view source() const { return source_; }
  std::int64_t size(const char* key) const;  // an integer from 1 to 1e9
  std::int64_t size(const char* key, std::int64_t otherwise) const;
  std::int64_t layers(const char* key) const;  // an integer from 1 to 1000
  std::int64_t layers(const char* key, std::int64_t otherwise) const;
  double number(const char* key, double otherwise) const;
  bool flag(const char* key, bool otherwise) const;
  std::string word(const char* key, const char* otherwise) const;
  Activation activation(const char* key, const char* otherwise) const;
  const Json* find(const char* key) const;  // null where there is none, or JSON's null
  /// Refused unless it is missing or has this value.
  void must_be(const char* key, bool value, bool otherwise) const;

 private:
  const Json& object_;
  std::string_view source_;
};
Json parse_json(std::string_view json, std::string_view source);
std::string hugging_face_name(Activation activation);

/// Refused where the weights hold fewer numbers than the model has.
void require_enough(const Weights& weights, const DecoderConfig& model);

/// A parameter, or some of its rows, and the tensor that holds them there.
struct Exchange {
  Parameter ours;
  std::vector<std::string> names;       // written under the first, read from any
  bool transposed = false;              // theirs is [in, out]
  std::vector<std::int64_t> rows = {};  // our row r is their row rows[r]; empty: in one order
  std::int64_t first = 0, count = 0;    // of our rows; count 0: all of them

  /// Those rows of a tensor shaped like ours.
  Tensor piece(const Tensor& whole) const { return count == 0 ? whole : whole.slice(first, count); }
};
/// A piece's numbers in their layout.
std::vector<double> to_theirs(const Exchange& tensor, std::span<const double> ours);
/// Copies all of them out of the files, some rows at a time. Nothing is changed unless all fit.
void read_tensors(const Weights& weights, std::span<const Exchange> tensors);
/// model.safetensors in f32, or its parts of at most `most` bytes (0: no limit) and their index.
void write_tensors(const std::filesystem::path& folder, std::span<const Exchange> tensors,
                   std::uint64_t most = 0, const std::string& name = "model");
/// Makes a folder to write into, where it is missing; an Error if one of these files is there.
void make_model_folder(const std::filesystem::path& folder,
                       std::initializer_list<const char*> files);

/// A family: its configuration both ways and its tensors. What lies in nn/families/: a file
/// NAME.cpp there defines `const Family NAME_family`.
struct Family {
  std::string_view type;  // model_type of config.json
  DecoderConfig (*config)(const Fields& fields);
  /// A model of this configuration is written in this family's form: of all families one claims it.
  bool (*claims)(const DecoderConfig& config);
  /// Its config.json, without the tokens' ids. An Error where the model has no such form.
  Json (*json)(const DecoderConfig& config);
  std::vector<Exchange> (*tensors)(const Decoder& decoder);
};
std::span<const Family* const> families();
/// The one that claims a model of this configuration; an Error where none does.
const Family& family_of(const DecoderConfig& config);

/// The family of a folder's config.json, and the model it tells of.
struct ForeignConfig {
  const Family* family = nullptr;
  DecoderConfig config;
  std::vector<std::int32_t> ends = {};  // eos_token_id: tokens that end a text
};
ForeignConfig parse_config(std::string_view json, std::string_view source);
/// The eos_token_id of generation_config.json, where it has one, replaces that of config.json.
ForeignConfig read_config(const std::filesystem::path& folder);

/// The tokens that config.json and generation_config.json name.
struct TextTokens {
  std::optional<std::int32_t> begin = {};  // bos_token_id: the token before every text
  std::vector<std::int32_t> ends = {};     // eos_token_id: tokens that end a text
};

/// A model of this configuration with the folder's weights.
std::unique_ptr<Decoder> import_model(const std::filesystem::path& folder, Backend& backend,
                                      DType type = DType::f32);
/// In the form of the family that claims it: learned positions make a GPT-2, others a GPT-NeoX.
/// What LoRA added must have been merged. Returns which. Weights lie in files of at most `most`
/// bytes; 0: in one. generation_config.json is written where there are `tokens` to name.
std::string_view export_model(const Decoder& decoder, const std::filesystem::path& folder,
                              std::uint64_t most = 0, const TextTokens& tokens = {});

/// The softmax heads, alike in all layers, that make up the width, of a model with plain blocks:
/// two LayerNorms, a feed forward without a gate, biases. What GPT-2 and GPT-NeoX have in common.
/// An Error, beginning with `family`, for any other model, and for windows, tempers and several
/// outputs.
struct PlainHeads {
  std::int64_t heads = 0, width = 0;
  const SoftmaxHeads* options = nullptr;  // of all of them; they live as long as the configuration
};
PlainHeads plain_heads(const DecoderConfig& config, std::string_view family);

}  // namespace longhand::nn
