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
/// shards listed in model.safetensors.index.json. This file contains the code that all families
/// share. Each family has a file of its own. A folder is not trusted: every fault throws a one-line
/// Error, and the size of its files bounds the allocated memory.
namespace longhand::nn {

/// The fields of a configuration. `otherwise` is the value of a missing field. Reading a field
/// whose value has the wrong kind throws a one-line Error.
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
  const Json* find(const char* key) const;  // null if the field is missing or null in JSON
  /// Throws an Error if the value of the field is not `value`. A missing field has the value
  /// `otherwise`.
  void must_be(const char* key, bool value, bool otherwise) const;

 private:
  const Json& object_;
  std::string_view source_;
};
Json parse_json(std::string_view json, std::string_view source);
std::string hugging_face_name(Activation activation);

/// Throws an Error if the weights contain fewer entries than the parameters of the model.
void require_enough(const Weights& weights, const DecoderConfig& model);

/// A parameter or a range of its rows, and the published tensor that stores them.
struct Exchange {
  Parameter ours;
  std::vector<std::string> names;  // possible names; the first one is used when a model is written
  bool transposed = false;         // the published matrix is [in, out]
  // Row r of our tensor is row rows[r] of the published tensor; empty: rows have the same order.
  std::vector<std::int64_t> rows = {};
  std::int64_t first = 0, count = 0;  // our rows first .. first + count - 1; count 0: all rows

  /// Returns the rows first .. first + count - 1 of a tensor that has the shape of our parameter.
  Tensor piece(const Tensor& whole) const { return count == 0 ? whole : whole.slice(first, count); }
};
/// Rearranges the numbers of our tensor into the layout of the published tensor.
std::vector<double> to_theirs(const Exchange& tensor, std::span<const double> ours);
/// Copies all tensors from the files, some rows at a time. If a tensor is missing or has another
/// shape, throws an Error and changes nothing.
void read_tensors(const Weights& weights, std::span<const Exchange> tensors);
/// Does the same as read_tensors() for a model whose matrices have no memory yet
/// (Storage::deferred). A matrix stays in the blocks of the file if the file stores all of its rows
/// in blocks. If our rows have the same order as the file's, the blocks are not copied. Other
/// matrices are read as `plain`.
void read_tensors_in_blocks(const Weights& weights, std::span<const Exchange> tensors, DType plain);
/// Writes `name`.safetensors in f32. If it would exceed `most` bytes (0: no limit), writes parts
/// and an index instead.
void write_tensors(const std::filesystem::path& folder, std::span<const Exchange> tensors,
                   std::uint64_t most = 0, const std::string& name = "model");
/// Creates an output folder if it is missing. Throws an Error if it contains one of `files`.
void make_model_folder(const std::filesystem::path& folder,
                       std::initializer_list<const char*> files);

/// A published model family: conversion of its configuration in both directions, and its tensors. A
/// file NAME.cpp in nn/families/ defines `const Family NAME_family`.
struct Family {
  std::string_view type;  // model_type in config.json
  DecoderConfig (*config)(const Fields& fields);
  /// True if this family's form can represent a model with this configuration. For each
  /// configuration, this is true for at most one family.
  bool (*claims)(const DecoderConfig& config);
  /// The model's config.json, without token ids. Throws an Error if this family's form cannot
  /// represent the model.
  Json (*json)(const DecoderConfig& config);
  std::vector<Exchange> (*tensors)(const Decoder& decoder);
};
std::span<const Family* const> families();
/// The family whose `claims` is true for this configuration. Throws an Error if there is none.
const Family& family_of(const DecoderConfig& config);

/// The contents of a published config.json: the model family, the model configuration and the
/// tokens that end a text.
struct ForeignConfig {
  const Family* family = nullptr;
  DecoderConfig config;
  std::vector<std::int32_t> ends = {};  // eos_token_id: the tokens that end a text
};
ForeignConfig parse_config(std::string_view json, std::string_view source);
/// Reads a folder's configuration. If generation_config.json has an eos_token_id, it replaces the
/// eos_token_id of config.json.
ForeignConfig read_config(const std::filesystem::path& folder);

/// The begin and end tokens named by config.json and generation_config.json.
struct TextTokens {
  std::optional<std::int32_t> begin = {};  // bos_token_id: the token that begins every text
  std::vector<std::int32_t> ends = {};     // eos_token_id: the tokens that end a text
};

/// Makes a model with this folder's configuration and weights.
std::unique_ptr<Decoder> import_model(const std::filesystem::path& folder, Backend& backend,
                                      DType type = DType::f32);
/// Writes a model in the form of its family (family_of()), and returns the family's name. For
/// example, models with learned positions become GPT-2. Low-rank products must be merged first.
/// Weights are written to files of at most `most` bytes (0: a single file). If `tokens` contains a
/// token, generation_config.json is written too.
std::string_view export_model(const Decoder& decoder, const std::filesystem::path& folder,
                              std::uint64_t most = 0, const TextTokens& tokens = {});

/// The softmax heads of a model that has the form of GPT-2 or GPT-NeoX. In this form, each block
/// has two LayerNorms and a feed forward with biases and without a gate. All layers have the same
/// heads, whose widths add up to the width of the residual stream.
struct PlainHeads {
  std::int64_t heads = 0, width = 0;
  // The options that all heads share; a pointer into the configuration.
  const SoftmaxHeads* options = nullptr;
};
/// Throws an Error that begins with `family` if the model does not have the form of GPT-2 or
/// GPT-NeoX.
PlainHeads plain_heads(const DecoderConfig& config, std::string_view family);

}  // namespace longhand::nn
