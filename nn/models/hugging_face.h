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
/// shards that model.safetensors.index.json names. This file has what the families share; each
/// family has a file of its own. Folders are untrusted: every fault is reported in one line, and no
/// more memory is allocated than the folder's files have bytes for.
namespace longhand::nn {

/// Fields of a configuration. A field of the wrong kind is refused in one line.
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
  const Json* find(const char* key) const;  // null if it is missing or JSON's null
  /// Refuses a field that is present with another value.
  void must_be(const char* key, bool value, bool otherwise) const;

 private:
  const Json& object_;
  std::string_view source_;
};
Json parse_json(std::string_view json, std::string_view source);
std::string hugging_face_name(Activation activation);

/// Refuses weights with fewer numbers than the model has.
void require_enough(const Weights& weights, const DecoderConfig& model);

/// A parameter, or some of its rows, and the file's tensor that holds it.
struct Exchange {
  Parameter ours;
  std::vector<std::string> names;  // written under the first name, read under any
  bool transposed = false;         // the file's matrix is [in, out]
  // our row r is row rows[r] in the file; empty: the same order
  std::vector<std::int64_t> rows = {};
  std::int64_t first = 0, count = 0;  // range of our rows; count 0: all of them

  /// These rows of a tensor shaped like ours.
  Tensor piece(const Tensor& whole) const { return count == 0 ? whole : whole.slice(first, count); }
};
/// The numbers of a piece in the file's layout.
std::vector<double> to_theirs(const Exchange& tensor, std::span<const double> ours);
/// Copies all tensors from the files, some rows at a time. Changes nothing unless all of them fit.
void read_tensors(const Weights& weights, std::span<const Exchange> tensors);
/// Writes model.safetensors in f32, or parts of at most `most` bytes (0: no limit) with their
/// index.
void write_tensors(const std::filesystem::path& folder, std::span<const Exchange> tensors,
                   std::uint64_t most = 0, const std::string& name = "model");
/// Creates a folder to write into if it is missing. Throws an Error if one of these files exists.
void make_model_folder(const std::filesystem::path& folder,
                       std::initializer_list<const char*> files);

/// A published family: its configuration in both directions, and its tensors. A file NAME.cpp in
/// nn/families/ defines `const Family NAME_family`.
struct Family {
  std::string_view type;  // model_type in config.json
  DecoderConfig (*config)(const Fields& fields);
  /// True for the one family in whose form a model of this configuration is written.
  bool (*claims)(const DecoderConfig& config);
  /// Its config.json, without the tokens' ids. An Error where the model has no such form.
  Json (*json)(const DecoderConfig& config);
  std::vector<Exchange> (*tensors)(const Decoder& decoder);
};
std::span<const Family* const> families();
/// The family that claims a model of this configuration. Throws an Error if there is none.
const Family& family_of(const DecoderConfig& config);

/// The family of a folder's config.json, and the configuration it describes.
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

/// The softmax heads, equal in all layers and as wide as the stream, of a model with plain blocks:
/// two LayerNorms, a feed forward without a gate, biases. GPT-2 and GPT-NeoX have this form. Throws
/// an Error that begins with `family` for any other model, and for windows, tempers and several
/// outputs.
struct PlainHeads {
  std::int64_t heads = 0, width = 0;
  // options of all heads; valid while the configuration exists
  const SoftmaxHeads* options = nullptr;
};
PlainHeads plain_heads(const DecoderConfig& config, std::string_view family);

}  // namespace longhand::nn
