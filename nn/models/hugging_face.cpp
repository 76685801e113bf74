#include "nn/models/hugging_face.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <system_error>

#include "core/atomic_file.h"
#include "core/contract/elementwise.h"
#include "core/error.h"
#include "core/quote.h"
#include "core/text_file.h"

namespace fs = std::filesystem;

namespace longhand::nn {
namespace {

constexpr std::size_t most_config = 1 << 20;  // maximum bytes of a config.json
constexpr const char* generation_file = "generation_config.json";

struct ActivationName {
  std::string_view name;
  Activation f;
};
/// If an activation has several names, the first one is used when a model is written.
constexpr std::array<ActivationName, 6> activations{{{"gelu", Activation::gelu},
                                                     {"gelu_new", Activation::gelu_tanh},
                                                     {"gelu_fast", Activation::gelu_tanh},
                                                     {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                     {"relu", Activation::relu},
                                                     {"silu", Activation::silu}}};

Shape shape_there(const Exchange& tensor) {
  const Shape shape = tensor.piece(tensor.ours.value()).shape();
  return tensor.transposed ? Shape{shape[1], shape[0]} : shape;
}

/// Calls visit(i, place) for every entry i of our tensor. `place` is the index of this entry in the
/// published tensor.
template <class F>
void for_each_place(const Exchange& tensor, F visit) {
  const Shape shape = tensor.piece(tensor.ours.value()).shape();
  const std::int64_t rows = shape[0], width = shape.size() / std::max<std::int64_t>(1, rows);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t row = tensor.rows.empty() ? r : tensor.rows[static_cast<std::size_t>(r)];
    for (std::int64_t c = 0; c < width; ++c) {
      visit(static_cast<std::size_t>(r * width + c),
            static_cast<std::size_t>(tensor.transposed ? c * rows + row : row * width + c));
    }
  }
}

std::string shown(const Json* value) { return value ? quote(value->dump()) : "none"; }

/// A lower bound on the number of entries of all parameters. The result is a double, so that the
/// products of large sizes do not overflow.
double at_least(const DecoderConfig& c) {
  const auto size = [](std::int64_t n) { return static_cast<double>(n); };
  double sum = size(c.vocabulary) * size(c.width) * (c.tied ? 1 : 2);
  if (c.positions == Positions::learned) sum += size(c.longest) * size(c.width);
  const MixerList& mixers = c.mixers.front();
  return sum + size(c.layers) * size(c.width) *
                   (size(projection_columns(mixers)) + size(columns(mixers)) +
                    (c.gated ? 3 : 2) * size(c.inner));
}

}  // namespace

Fields::Fields(const Json& object, std::string_view source) : object_(object), source_(source) {
  LONGHAND_CHECK(object.is_object(), source, ": expected a JSON object");
}

std::int64_t Fields::size(const char* key) const {
  const Json* const value = find(key);
  LONGHAND_CHECK(value && value->is_integer() && value->number() >= 1 && value->number() <= 1e9,
                 source_, ": ", key, ": expected an integer from 1 to 1e9, got ", shown(value));
  return value->integer();
}

std::int64_t Fields::size(const char* key, std::int64_t otherwise) const {
  if (find(key)) return size(key);
  LONGHAND_CHECK(otherwise >= 1 && otherwise <= 1'000'000'000, source_, ": ", key,
                 ": expected an integer from 1 to 1e9; the key is missing, and its default is ",
                 otherwise);
  return otherwise;
}

std::int64_t Fields::layers(const char* key) const {
  constexpr std::int64_t most = 1000;
  const std::int64_t count = size(key);
  LONGHAND_CHECK(count <= most, source_, ": ", key, ": expected at most ", most, ", got ", count);
  return count;
}

std::int64_t Fields::layers(const char* key, std::int64_t otherwise) const {
  return find(key) ? layers(key) : otherwise;
}

double Fields::number(const char* key, double otherwise) const {
  const Json* const value = find(key);
  LONGHAND_CHECK(!value || (value->is_number() && std::isfinite(value->number())), source_, ": ",
                 key, ": expected a number, got ", shown(value));
  return value ? value->number() : otherwise;
}

bool Fields::flag(const char* key, bool otherwise) const {
  const Json* const value = find(key);
  LONGHAND_CHECK(!value || value->is_boolean(), source_, ": ", key,
                 ": expected true or false, got ", shown(value));
  return value ? value->boolean() : otherwise;
}

void Fields::must_be(const char* key, bool value, bool otherwise) const {
  LONGHAND_CHECK(flag(key, otherwise) == value, source_, ": ", key, ": expected ",
                 value ? "true" : "false", ", got ", value ? "false" : "true");
}

std::string Fields::word(const char* key, const char* otherwise) const {
  const Json* const value = find(key);
  LONGHAND_CHECK(!value || value->is_string(), source_, ": ", key, ": expected a string, got ",
                 shown(value));
  return value ? value->string() : otherwise;
}

Activation Fields::activation(const char* key, const char* otherwise) const {
  const std::string name = word(key, otherwise);
  const auto found = std::ranges::find(activations, name, &ActivationName::name);
  LONGHAND_CHECK(found != activations.end(), source_, ": ", key, ": expected gelu, gelu_new, ",
                 "gelu_fast, gelu_pytorch_tanh, relu or silu, got ", quote(name));
  return found->f;
}

const Json* Fields::find(const char* key) const {
  const Json* const found = object_.find(key);
  return found && !found->is_null() ? found : nullptr;
}

Json parse_json(std::string_view json, std::string_view source) {
  std::optional<Json> object = Json::parse(json);
  LONGHAND_CHECK(object, source, ": expected JSON, got something else");
  return std::move(*object);
}

std::string hugging_face_name(Activation activation) {
  const auto found = std::ranges::find(activations, activation, &ActivationName::f);
  LONGHAND_CHECK(found != activations.end(), "activation ", name_of(activation),
                 " has no name in Hugging Face's format");
  return std::string(found->name);
}

void require_enough(const Weights& weights, const DecoderConfig& model) {
  const double least = at_least(model), held = weights.numbers();
  LONGHAND_CHECK(least <= held, weights.name(), ": expected at least ", least,
                 " parameters, as the configuration says, got ", held);
}

std::vector<double> to_theirs(const Exchange& tensor, std::span<const double> ours) {
  std::vector<double> theirs(ours.size());
  for_each_place(tensor, [&](std::size_t i, std::size_t place) { theirs[place] = ours[i]; });
  return theirs;
}

namespace {

/// Number of rows that are copied at a time. Together, they have at most 2^18 entries, unless a
/// single row has more.
std::int64_t rows_at_once(const Tensor& value) {
  const std::int64_t width = value.size() / value.shape().front();
  return std::max<std::int64_t>(1, (1 << 18) / width);
}

/// Fills `ours` with consecutive rows of our parameter, which are read from the file. `first` is
/// the index of the first of these rows, counted within the part of the parameter that `tensor`
/// describes. Each row has `width` entries.
void read_rows(const Exchange& tensor, const StoredTensor& stored, std::int64_t first,
               std::int64_t width, std::span<double> ours) {
  const std::int64_t rows = std::ssize(ours) / std::max<std::int64_t>(1, width);
  if (tensor.rows.empty()) {
    stored.read(first * width, ours);
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    stored.read(tensor.rows[static_cast<std::size_t>(first + r)] * width,
                ours.subspan(static_cast<std::size_t>(r * width), static_cast<std::size_t>(width)));
  }
}

/// Reads a whole transposed tensor. The rows of our tensor cannot be read one by one, because a row
/// is not contiguous in the file.
std::vector<double> read_transposed(const Exchange& tensor, const StoredTensor& stored) {
  std::vector<double> theirs(static_cast<std::size_t>(stored.shape.size())), ours(theirs.size());
  stored.read(0, theirs);
  for_each_place(tensor, [&](std::size_t i, std::size_t place) { ours[i] = theirs[place]; });
  return ours;
}

void set_rows(const Tensor& value, std::int64_t first, std::span<const double> numbers) {
  const std::int64_t width = value.size() / value.shape().front();
  const Tensor rows = value.slice(first, std::ssize(numbers) / width);
  value.backend()(
      Copy{.x = Tensor::from(value.backend(), rows.shape(), rows.dtype(), numbers), .y = rows});
}

}  // namespace

void read_tensors(const Weights& weights, std::span<const Exchange> tensors) {
  for (const Exchange& tensor : tensors) {
    const StoredTensor stored = weights.at(tensor.names);
    const Shape expected = shape_there(tensor);
    LONGHAND_CHECK(stored.shape == expected, stored.place, "expected ", expected, ", got ",
                   stored.shape);
  }
  std::vector<double> ours;
  for (const Exchange& tensor : tensors) {
    const StoredTensor stored = weights.at(tensor.names);
    const Tensor value = tensor.piece(tensor.ours.value());
    if (value.size() == 0) continue;
    if (tensor.transposed) {
      set_rows(value, 0, read_transposed(tensor, stored));
      continue;
    }
    const std::int64_t rows = value.shape().front(), width = value.size() / rows;
    const std::int64_t step = rows_at_once(value);
    for (std::int64_t first = 0; first < rows; first += step) {
      ours.resize(static_cast<std::size_t>(std::min(step, rows - first) * width));
      read_rows(tensor, stored, first, width, ours);
      set_rows(value, first, ours);
    }
  }
}

namespace {

/// The blocks of the rows of a parameter that `tensor` describes; no value if the file does not
/// store them in blocks.
std::optional<BlockRows> rows_in_blocks(const Weights& weights, const Exchange& tensor) {
  std::optional<StoredBlocks> stored;
  for (const std::string& name : tensor.names) {
    if (!stored) stored = weights.find_blocks(name);
  }
  if (!stored || !tensor.ours.accepts_blocks()) return {};
  const Shape& whole = tensor.ours.shape();
  const Shape expected = tensor.count == 0 ? whole : whole.with_front(tensor.count);
  LONGHAND_CHECK(stored->shape == expected, weights.name(), ": tensor ",
                 quote(tensor.names.front()), ": expected ", expected, ", got ", stored->shape);
  const std::int64_t rows = expected.rows(), bytes = row_bytes(*stored->type, expected.columns());
  const Shape shape{rows, bytes};
  Backend& backend = tensor.ours.backend();
  if (stored->rows.empty() && tensor.rows.empty()) {
    return BlockRows{stored->type,
                     Tensor::of_bytes(backend, shape, stored->bytes.data(), stored->owner)};
  }
  std::vector<std::byte> in_order;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t at = tensor.rows.empty() ? row : tensor.rows[static_cast<std::size_t>(row)];
    if (!stored->rows.empty()) at = stored->rows[static_cast<std::size_t>(at)];
    const auto from = stored->bytes.subspan(static_cast<std::size_t>(at * bytes),
                                            static_cast<std::size_t>(bytes));
    in_order.insert(in_order.end(), from.begin(), from.end());
  }
  const Tensor copy(backend, shape, DType::u8);
  backend.upload(copy.address(), in_order.data(), in_order.size());
  return BlockRows{stored->type, copy};
}

/// The blocks of a whole parameter, which `pieces` describe in the order of its rows. Empty if the
/// file does not store all of them in blocks.
BlockMatrix matrix_in_blocks(const Weights& weights, std::span<const Exchange> pieces) {
  BlockMatrix w{.parts = {}, .columns = pieces.front().ours.shape().columns()};
  std::int64_t next = 0;
  for (const Exchange& piece : pieces) {
    const auto rows = piece.first == next && w.parts.size() < most_block_parts
                          ? rows_in_blocks(weights, piece)
                          : std::nullopt;
    if (!rows) return {};
    w.parts.push_back(*rows);
    next += rows->bytes.rows();
  }
  return next == pieces.front().ours.shape().rows() ? w : BlockMatrix();
}

}  // namespace

void read_tensors_in_blocks(const Weights& weights, std::span<const Exchange> tensors,
                            DType plain) {
  for (const Exchange& tensor : tensors) {
    const Parameter& ours = tensor.ours;
    if (ours.var() || ours.blocks()) continue;
    std::vector<Exchange> pieces;
    std::ranges::copy_if(tensors, std::back_inserter(pieces),
                         [&](const Exchange& piece) { return piece.ours == ours; });
    if (BlockMatrix w = matrix_in_blocks(weights, pieces)) {
      ours.put(std::move(w));
    } else {
      ours.allocate(plain);
    }
  }
  std::vector<Exchange> others;
  std::ranges::copy_if(tensors, std::back_inserter(others),
                       [](const Exchange& tensor) { return !tensor.ours.blocks(); });
  read_tensors(weights, others);
}

void write_tensors(const fs::path& folder, std::span<const Exchange> tensors, std::uint64_t most,
                   const std::string& name) {
  std::vector<SafetensorsItem> items;
  for (const Exchange& tensor : tensors) {
    const auto bytes = [&tensor](const SafetensorsItem::Give& give) {
      const auto give_numbers = [&give](std::span<const double> numbers) {
        const std::vector<float> theirs(numbers.begin(), numbers.end());
        give(std::as_bytes(std::span(theirs)));
      };
      const Tensor value = tensor.piece(tensor.ours.value());
      if (value.size() == 0) return;
      if (tensor.transposed || !tensor.rows.empty()) {
        give_numbers(to_theirs(tensor, value.to_doubles()));
        return;
      }
      const std::int64_t rows = value.shape().front();
      const std::int64_t step = rows_at_once(value);
      for (std::int64_t first = 0; first < rows; first += step) {
        give_numbers(value.slice(first, std::min(step, rows - first)).to_doubles());
      }
    };
    items.push_back({tensor.names.front(), DType::f32, shape_there(tensor), bytes});
  }
  write_safetensors_parts(folder, name, items, {{"format", "pt"}}, most);
}

void make_model_folder(const fs::path& folder, std::initializer_list<const char*> files) {
  for (const char* file : files) {
    LONGHAND_CHECK(!fs::exists(folder / file), (folder / file).string(),
                   ": expected a folder without a model, but this file exists");
  }
  std::error_code error;
  fs::create_directories(folder, error);
  LONGHAND_CHECK(!error, folder.string(), ": cannot be created: ", error.message());
}

namespace {

/// The token ids in the field eos_token_id, which contains a number or a list of numbers. Empty if
/// the field is missing.
std::vector<std::int32_t> ends_of(const Fields& fields) {
  constexpr const char* key = "eos_token_id";
  const Json* const found = fields.find(key);
  if (!found) return {};
  std::vector<std::int32_t> ends;
  for (const Json& id : found->is_array() ? *found : Json(Json::Array{*found})) {
    LONGHAND_CHECK(id.is_integer() && id.number() >= 0 && id.number() <= 1e9, fields.source(), ": ",
                   key, ": expected token ids, got ", shown(found));
    ends.push_back(static_cast<std::int32_t>(id.integer()));
  }
  return ends;
}

}  // namespace

ForeignConfig parse_config(std::string_view json, std::string_view source) {
  const Json object = parse_json(json, source);
  const Fields fields(object, source);
  const std::string type = fields.word("model_type", "");
  std::vector<std::string_view> names;
  for (const Family* const family : families()) {
    if (family->type == type) {
      ForeignConfig result{family, family->config(fields), ends_of(fields)};
      try {
        check(result.config);
      } catch (const Error& error) {
        fail(source, ": ", error.what());
      }
      return result;
    }
    names.push_back(family->type);
  }
  fail(source, ": model_type: expected ", listed(names), ", got ", quote(type));
}

ForeignConfig read_config(const fs::path& folder) {
  const fs::path path = folder / "config.json";
  ForeignConfig foreign = parse_config(read_text(path, most_config), path.string());
  const fs::path generation = folder / generation_file;
  if (fs::exists(generation)) {
    const Json object = parse_json(read_text(generation, most_config), generation.string());
    const std::string source = generation.string();
    auto ends = ends_of(Fields(object, source));
    if (!ends.empty()) foreign.ends = std::move(ends);
  }
  return foreign;
}

std::unique_ptr<Decoder> import_model(const fs::path& folder, Backend& backend, DType type) {
  ForeignConfig foreign = read_config(folder);
  const auto weights = open_weights(folder);
  require_enough(*weights, foreign.config);
  auto decoder = std::make_unique<Decoder>(backend, std::move(foreign.config), 0,
                                           Storage{.type = type, .initial = false});
  read_tensors(*weights, foreign.family->tensors(*decoder));
  return decoder;
}

const Family& family_of(const DecoderConfig& config) {
  LONGHAND_CHECK(!wants_reference(config),
                 "expected plain attention, got reinforced heads, which Hugging Face's "
                 "format does not support");
  LONGHAND_CHECK(!config.given_positions,
                 "expected positions that follow the tokens' order, got positions given by "
                 "the task, which Hugging Face's format does not support");
  const auto claiming = std::ranges::find_if(
      families(), [&](const Family* family) { return family->claims(config); });
  LONGHAND_CHECK(claiming != families().end(), "no Hugging Face family matches this model");
  return **claiming;
}

namespace {

/// The value of the field eos_token_id for these tokens: nothing, a number or a list of numbers.
/// The inverse of ends_of().
Json ends_json(const std::vector<std::int32_t>& ends) {
  if (ends.empty()) return {};
  return ends.size() == 1 ? Json(ends.front()) : Json(ends);
}

}  // namespace

std::string_view export_model(const Decoder& decoder, const fs::path& folder, std::uint64_t most,
                              const TextTokens& tokens) {
  const Family& family = family_of(decoder.config());
  LONGHAND_CHECK(decoder.adapters().empty(),
                 "expected a model whose adapters are merged, got a model with adapters");
  Json config = family.json(decoder.config());
  Json generation = Json::object();
  for (Json* const json : {&config, &generation}) {
    (*json)["bos_token_id"] = tokens.begin ? Json(*tokens.begin) : Json();
    (*json)["eos_token_id"] = ends_json(tokens.ends);
  }
  make_model_folder(folder, {"config.json", generation_file, "model.safetensors",
                             "model.safetensors.index.json"});
  write_tensors(folder, family.tensors(decoder), most);
  if (tokens.begin || !tokens.ends.empty()) {
    write_atomically(folder / generation_file, generation.dump(2) + "\n");
  }
  write_atomically(folder / "config.json", config.dump(2) + "\n");
  return family.type;
}

PlainHeads plain_heads(const DecoderConfig& config, std::string_view family) {
  const auto other = [&](const std::string& got) {
    fail(family, ": expected softmax heads of one width in all layers, got ", got,
         "; Hugging Face's format supports no other heads");
  };
  PlainHeads all;
  for (const MixerList& mixers : config.mixers) {
    if (text_of(mixers) != text_of(config.mixers.front())) other(text_of(config.mixers));
  }
  for (const AnyMixer& mixer : config.mixers.front()) {
    const auto* const heads = dynamic_cast<const SoftmaxHeads*>(&*mixer);
    if (!heads) other(text_of(config.mixers));
    if (!all.options) all.options = heads;
    // Mixers may differ in their numbers of heads. The numbers are therefore made equal before the
    // other options are compared as text.
    SoftmaxHeads same = *all.options;
    same.heads = heads->heads;
    same.key_heads = heads->heads;
    if (text_of(MixerList{same.clone()}) != text_of(MixerList{mixer}))
      other(text_of(config.mixers));
    all.heads += heads->heads;
  }
  all.width = all.options->width;
  LONGHAND_CHECK(all.heads * all.width == config.width, family,
                 ": expected heads whose widths add up to ", config.width,
                 ", the width of the model, got ", text_of(config.mixers));
  LONGHAND_CHECK(config.outputs.empty() || config.outputs == std::vector{config.vocabulary}, family,
                 ": expected one output layer with ", config.vocabulary,
                 " classes, the size of the vocabulary, got ", config.outputs.size(),
                 " output layer(s), the first with ", config.outputs.front(), " classes");
  LONGHAND_CHECK(!config.output_bias, family,
                 ": expected an output layer without a bias, got one with a bias");
  LONGHAND_CHECK(all.options->window == 0, family,
                 ": expected heads that see all keys, got a window of ", all.options->window);
  LONGHAND_CHECK(all.options->scores.temper == Temper::none, family,
                 ": expected heads of kind \"softmax\" without the option \"temper\", got heads "
                 "with this option");
  const RopeOptions& rope = all.options->rope;
  LONGHAND_CHECK(
      !rope.interleaved && rope.factor == 1, family,
      ": expected unscaled rotary positions that pair entry i of the first half of a head with "
      "entry i of the second half");
  LONGHAND_CHECK(
      config.norm == NormKind::layer && !config.norms_after && !config.gated &&
          config.embedding_scale == 1 && config.feed_forward_bias,
      family,
      ": expected LayerNorms before attention and feed forward, no norms after them, feed "
      "forwards with biases and without gates, and embeddings without a scale, got "
      "another configuration");
  return all;
}

}  // namespace longhand::nn
