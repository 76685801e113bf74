#include "nn/models/gguf.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/quote.h"
#include "core/utf8.h"
#include "nn/models/gguf_names.h"
#include "nn/text/tokenizer.h"

namespace longhand::nn {
namespace {

constexpr std::size_t longest_cut_token = 1024;  // maximum bytes of a token that merges_of() splits

GgufKind kind_of(const GgufFile& file) {
  const std::string_view name = file.string("general.architecture");
  const auto kind = gguf_kind(name);
  LONGHAND_CHECK(kind, file.name(),
                 ": general.architecture: expected llama, qwen2, gemma3 or gpt2, got ",
                 quote(name));
  return *kind;
}

/// Reads the metadata values of a GGUF file whose keys start with the name of the model's
/// architecture. The functions receive the key without this prefix.
class Values {
 public:
  explicit Values(const GgufFile& file)
      : file_(file), prefix_(std::string(file.string("general.architecture")) + '.') {}

  bool has(std::string_view key) const { return file_.has(prefix_ + std::string(key)); }
  std::int64_t size(std::string_view key) const {
    const std::string name = prefix_ + std::string(key);
    const std::uint64_t value = file_.integer(name);
    LONGHAND_CHECK(value <= 1'000'000'000, file_.name(), ": ", name, ": expected at most 1e9, got ",
                   value);
    return static_cast<std::int64_t>(value);
  }
  std::int64_t size(std::string_view key, std::int64_t otherwise) const {
    return has(key) ? size(key) : otherwise;
  }
  double number(std::string_view key) const { return file_.number(prefix_ + std::string(key)); }
  double number(std::string_view key, double otherwise) const {
    return has(key) ? number(key) : otherwise;
  }
  std::string_view word(std::string_view key) const {
    return file_.string(prefix_ + std::string(key));
  }

 private:
  const GgufFile& file_;
  std::string prefix_;
};

const GgufFile::Entry& tensor(const GgufFile& file, std::string_view name) {
  const GgufFile::Entry* const found = file.find(name);
  LONGHAND_CHECK(found, file.name(), ": has no tensor ", quote(name));
  return *found;
}

/// Returns the rope_scaling of a Llama 3 model. A GGUF file stores one divisor per frequency. The
/// divisor of the lowest frequency is the scaling factor. Throws an Error if another divisor
/// differs from the formula in nn/layers/rope.h.
Json stretched(const GgufFile& file, double base, std::int64_t head) {
  const GgufFile::Entry& entry = tensor(file, "rope_freqs.weight");
  const std::int64_t count = head / 2;
  LONGHAND_CHECK(entry.shape == Shape{count}, file.name(), ": rope_freqs.weight: expected ", count,
                 " numbers, got ", entry.shape);
  std::vector<double> divisors(static_cast<std::size_t>(count));
  decode_gguf(*entry.type, entry.bytes, 0, divisors);
  const double factor = divisors.back(), original = 8192, low = 1, high = 4;
  for (std::int64_t i = 0; i < count; ++i) {
    const double wave = 2 * 3.14159265358979323846 *
                        std::pow(base, 2 * static_cast<double>(i) / static_cast<double>(head));
    double expected = factor;
    if (wave < original / high) {
      expected = 1;
    } else if (wave <= original / low) {
      const double s = (original / wave - low) / (high - low);
      expected = 1 / ((1 - s) / factor + s);
    }
    const double got = divisors[static_cast<std::size_t>(i)];
    LONGHAND_CHECK(std::abs(got - expected) <= 1e-4 * expected, file.name(),
                   ": rope_freqs.weight: expected rotary frequencies stretched as in Llama 3, got "
                   "other frequencies");
  }
  return {{"rope_type", "llama3"},
          {"factor", factor},
          {"low_freq_factor", low},
          {"high_freq_factor", high},
          {"original_max_position_embeddings", static_cast<std::int64_t>(original)}};
}

Json scaling_of(const GgufFile& file, const Values& values, double base, std::int64_t head) {
  if (file.find("rope_freqs.weight")) return stretched(file, base, head);
  if (!values.has("rope.scaling.type") || values.word("rope.scaling.type") == "none") return {};
  return {{"rope_type", values.word("rope.scaling.type")},
          {"factor", values.number("rope.scaling.factor", 1)}};
}

/// Adds the field eos_token_id, the tokens that end a text, to a config.json.
void add_ending_tokens(Json& config, const GgufFile& file) {
  if (!file.has(gguf_end_keys.front())) return;
  Json ends = Json::array();
  for (const char* key : gguf_end_keys) {
    if (file.has(key)) ends.push_back(file.integer(key));
  }
  config["eos_token_id"] = std::move(ends);
}

/// Returns the config.json of a GPT-2 model. GGUF files of such models have no fields for the
/// activation and for the scale of scores.
Json gpt2_config(const GgufFile& file, const Values& values, std::int64_t vocabulary) {
  const std::int64_t heads = values.size("attention.head_count");
  LONGHAND_CHECK(values.size("attention.head_count_kv", heads) == heads, file.name(),
                 ": attention.head_count_kv: expected ", heads,
                 ", the number of heads, got another number");
  Json json{{"model_type", "gpt2"},
            {"vocab_size", vocabulary},
            {"n_positions", values.size("context_length")},
            {"n_embd", values.size("embedding_length")},
            {"n_layer", values.size("block_count")},
            {"n_head", heads},
            {"n_inner", values.size("feed_forward_length")},
            {"activation_function", "gelu_new"},
            {"layer_norm_epsilon", values.number("attention.layer_norm_epsilon")},
            {"tie_word_embeddings", file.find("output.weight") == nullptr}};
  add_ending_tokens(json, file);
  return json;
}

class GgufWeights final : public Weights {
 public:
  explicit GgufWeights(std::shared_ptr<const GgufFile> file)
      : owner_(std::move(file)), file_(*owner_), kind_(kind_of(file_)) {
    const Values values(file_);
    heads_ = values.size("attention.head_count");
    key_heads_ = values.size("attention.head_count_kv", heads_);
  }

  const std::string& name() const override { return file_.name(); }
  double numbers() const override {
    double sum = 0;
    for (const GgufFile::Entry& entry : file_.entries()) {
      sum += static_cast<double>(entry.shape.size());
    }
    return sum;
  }

  bool matrices_are_bf16() const override {
    return std::ranges::all_of(file_.entries(), [](const GgufFile::Entry& entry) {
      return entry.shape.rank() < 2 || entry.type->name == "BF16";
    });
  }

  std::optional<StoredTensor> find(std::string_view tensor) const override {
    const auto here = gguf_tensor_name(tensor, kind_);
    const GgufFile::Entry* const entry = here ? file_.find(here->name) : nullptr;
    if (!entry) return std::nullopt;
    std::string place = text(file_.name(), ": tensor ", quote(entry->name), ": ");
    const auto plain = [entry](std::int64_t first, std::span<double> numbers) {
      decode_gguf(*entry->type, entry->bytes, first, numbers);
    };
    StoredTensor stored{std::move(place), entry->shape, plain};
    if (here->plus_one) {
      stored.read = [plain](std::int64_t first, std::span<double> numbers) {
        plain(first, numbers);
        for (double& number : numbers) number -= 1;
      };
    }
    if (here->paired) {
      const std::int64_t half = half_head(*entry, stored.place);
      const std::int64_t width =
          entry->shape.size() / std::max<std::int64_t>(1, entry->shape.front());
      stored.read = [plain, half, width](std::int64_t first, std::span<double> numbers) {
        for (std::int64_t done = 0; done < std::ssize(numbers);) {
          const std::int64_t at = first + done, row = at / width, begin = at % width;
          const std::int64_t count = std::min(width - begin, std::ssize(numbers) - done);
          plain(paired_row(row, half) * width + begin,
                numbers.subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(count)));
          done += count;
        }
      };
    }
    if (here->transposed) {
      LONGHAND_CHECK(entry->shape.rank() == 2, stored.place, "expected a matrix, got ",
                     entry->shape);
      const std::int64_t out = entry->shape[0], in = entry->shape[1];
      stored.shape = {in, out};
      stored.read = [plain, out, in](std::int64_t first, std::span<double> numbers) {
        std::vector<double> whole(static_cast<std::size_t>(out * in));
        plain(0, whole);
        for (std::size_t k = 0; k < numbers.size(); ++k) {
          const std::int64_t at = first + static_cast<std::int64_t>(k);
          numbers[k] = whole[static_cast<std::size_t>(at % out * in + at / out)];
        }
      };
    }
    return stored;
  }

  std::optional<StoredBlocks> find_blocks(std::string_view tensor) const override {
    const auto here = gguf_tensor_name(tensor, kind_);
    const GgufFile::Entry* const entry = here ? file_.find(here->name) : nullptr;
    if (!entry || entry->type->block == 1 || entry->shape.rank() != 2 || here->plus_one) return {};
    StoredBlocks stored{entry->type, entry->shape, entry->bytes, {}, owner_};
    if (here->paired) {
      const std::int64_t half = half_head(*entry, text(file_.name(), ": ", entry->name, ": "));
      for (std::int64_t row = 0; row < entry->shape.front(); ++row) {
        stored.rows.push_back(paired_row(row, half));
      }
    }
    return stored;
  }

 private:
  /// Number of rows of a half of one head: the file has these two halves interleaved. Throws an
  /// Error if the rows cannot be divided into heads with two halves.
  std::int64_t half_head(const GgufFile::Entry& entry, std::string_view place) const {
    const bool queries = entry.name.find("attn_q") != std::string::npos;
    const std::int64_t heads = queries ? heads_ : key_heads_;
    const std::int64_t rows = entry.shape.front();
    LONGHAND_CHECK(heads > 0 && rows % (2 * heads) == 0, place, "expected ", heads,
                   " heads with an even number of rows each, got ", rows, " rows in total");
    return rows / heads / 2;
  }

  std::shared_ptr<const GgufFile> owner_;
  const GgufFile& file_;
  GgufKind kind_;
  std::int64_t heads_ = 0, key_heads_ = 0;
};

/// One entry of added_tokens in tokenizer.json. Added tokens are found in a text before the text is
/// split into words.
std::string added_token(std::size_t id, std::string_view content, bool special) {
  return text(R"({"id":)", id, R"(,"content":)", json_string(content), R"(,"single_word":false,)",
              R"("lstrip":false,"rstrip":false,"normalized":false,"special":)",
              special ? "true" : "false", '}');
}

std::string byte_level(bool words) {
  return text(R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":)",
              words ? "true" : "false", '}');
}

std::string split(WordPattern pattern) {
  return text(R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)",
              json_string(regular_expression(pattern)),
              R"(},"behavior":"Isolated","invert":false},)", byte_level(false), "]}");
}

/// Returns the post_processor of tokenizer.json, which may add a begin token to each text. The
/// token is added if the file names a begin token and tokenizer.ggml.add_bos_token is true. If the
/// file lacks add_bos_token, `otherwise` is used in its place.
std::string template_of(const GgufFile& file, const std::vector<std::string_view>& tokens,
                        bool otherwise) {
  const bool adds = file.has("tokenizer.ggml.add_bos_token")
                        ? file.boolean("tokenizer.ggml.add_bos_token")
                        : otherwise;
  if (!adds || !file.has("tokenizer.ggml.bos_token_id")) return byte_level(false);
  const std::uint64_t id = file.integer("tokenizer.ggml.bos_token_id");
  LONGHAND_CHECK(id < tokens.size(), file.name(),
                 ": tokenizer.ggml.bos_token_id: expected an id below ", tokens.size(), ", got ",
                 id);
  const std::string token = json_string(tokens[static_cast<std::size_t>(id)]);
  const auto with_token = [&](char sequence, int type) {
    return text(R"({"SpecialToken":{"id":)", token, R"(,"type_id":)", type,
                R"(}},{"Sequence":{"id":")", sequence, R"(","type_id":)", type, "}}");
  };
  return text(R"({"type":"TemplateProcessing","single":[)", with_token('A', 0), R"(],"pair":[)",
              with_token('A', 0), ',', with_token('B', 1), R"(],"special_tokens":{)", token,
              R"(:{"id":)", token, R"(,"ids":[)", id, R"(],"tokens":[)", token, "]}}}");
}

struct Pipeline {
  std::string normalizer = "null", words, around, decoder, model;
};

std::string joined(const Pipeline& p, const std::string& added, const std::string& vocabulary,
                   const std::string& merges) {
  return text(R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)", added,
              R"(],"normalizer":)", p.normalizer, R"(,"pre_tokenizer":)", p.words,
              R"(,"post_processor":)", p.around, R"(,"decoder":)", p.decoder,
              R"(,"model":{"type":"BPE","dropout":null,"continuing_subword_prefix":null,)",
              R"("end_of_word_suffix":null,)", p.model, R"(,"vocab":{)", vocabulary,
              R"(},"merges":[)", merges, "]}}\n");
}

Pipeline byte_level_pipeline(const GgufFile& file, const std::vector<std::string_view>& tokens) {
  const std::string_view words = file.string("tokenizer.ggml.pre");
  const std::string whole = R"("unk_token":null,"fuse_unk":false,"byte_fallback":false,)";
  Pipeline p{.words = byte_level(true),
             .around = template_of(file, tokens, words == "llama-bpe"),
             .decoder = byte_level(true),
             .model = whole + R"("ignore_merges":false)"};
  if (words == "gpt-2" || words == "gpt2" || words == "default") return p;
  if (words == "smollm") {
    p.words = text(R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":)",
                   "true},", byte_level(true), "]}");
  } else if (words == "qwen2") {
    p.normalizer = R"({"type":"NFC"})";
    p.words = split(WordPattern::qwen2);
  } else if (words == "llama-bpe") {
    p.words = split(WordPattern::llama3);
    p.model = whole + R"("ignore_merges":true)";
  } else {
    fail(file.name(), ": tokenizer.ggml.pre: expected gpt-2, smollm, qwen2 or llama-bpe, got ",
         quote(words));
  }
  return p;
}

Pipeline gemma_pipeline(const GgufFile& file, const std::vector<std::string_view>& tokens) {
  const std::string mark = json_string(space_mark);
  return {
      .normalizer = text(R"({"type":"Replace","pattern":{"String":" "},"content":)", mark, '}'),
      .words = R"({"type":"Split","pattern":{"String":" "},"behavior":"MergedWithPrevious",)"
               R"("invert":false})",
      .around = template_of(file, tokens, true),
      .decoder = text(R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":)",
                      mark, R"(},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"}]})"),
      .model = R"("unk_token":"<unk>","fuse_unk":true,"byte_fallback":true,)"
               R"("ignore_merges":false)"};
}

/// The merges of a SentencePiece vocabulary: all pairs of tokens whose concatenation is a token.
/// The merges are sorted by the id of the concatenation.
std::string merges_of(const std::vector<std::string>& tokens) {
  std::unordered_map<std::string_view, std::size_t> ids;
  for (std::size_t id = 0; id < tokens.size(); ++id) ids.emplace(tokens[id], id);
  std::string merges;
  for (const std::string& token : tokens) {
    for (std::size_t cut = 1; cut < token.size(); ++cut) {
      if (continues_utf8(token[cut])) continue;
      const std::string_view left = std::string_view(token).substr(0, cut);
      const std::string_view right = std::string_view(token).substr(cut);
      if (!ids.contains(left) || !ids.contains(right)) continue;
      merges += text(merges.empty() ? "[" : ",[", json_string(left), ',', json_string(right), ']');
    }
  }
  return merges;
}

}  // namespace

Json gguf_config(const GgufFile& file) {
  const GgufKind kind = kind_of(file);
  const Values values(file);
  const Shape embedding = tensor(file, "token_embd.weight").shape;
  LONGHAND_CHECK(embedding.rank() == 2, file.name(), ": token_embd.weight: expected a matrix, got ",
                 embedding);
  const std::int64_t width = values.size("embedding_length");
  const std::int64_t heads = values.size("attention.head_count");
  LONGHAND_CHECK(heads >= 1, file.name(), ": attention.head_count: expected at least 1, got 0");
  if (kind == GgufKind::gpt2) return gpt2_config(file, values, embedding.front());
  const std::int64_t head = values.size("attention.key_length", width / heads);
  LONGHAND_CHECK(values.size("attention.value_length", head) == head, file.name(),
                 ": attention.value_length: expected ", head,
                 ", the length of the keys, got another value");
  LONGHAND_CHECK(values.size("rope.dimension_count", head) == head, file.name(),
                 ": rope.dimension_count: expected ", head,
                 ", the width of a head, got another value");
  const double base = values.number("rope.freq_base", kind == GgufKind::gemma3 ? 1e6 : 1e4);
  Json json{{"vocab_size", embedding.front()},
            {"hidden_size", width},
            {"intermediate_size", values.size("feed_forward_length")},
            {"num_hidden_layers", values.size("block_count")},
            {"num_attention_heads", heads},
            {"num_key_value_heads", values.size("attention.head_count_kv", heads)},
            {"head_dim", head},
            {"max_position_embeddings", values.size("context_length")},
            {"rms_norm_eps", values.number("attention.layer_norm_rms_epsilon")},
            {"rope_theta", base},
            {"tie_word_embeddings", file.find("output.weight") == nullptr}};
  json["rope_scaling"] = scaling_of(file, values, base, head);
  add_ending_tokens(json, file);
  switch (kind) {
    case GgufKind::llama:
      json["model_type"] = "llama";
      json["hidden_act"] = "silu";
      json["attention_bias"] = file.find("blk.0.attn_q.bias") != nullptr;
      json["mlp_bias"] = file.find("blk.0.ffn_gate.bias") != nullptr;
      break;
    case GgufKind::qwen2:
      json["model_type"] = "qwen2";
      json["hidden_act"] = "silu";
      break;
    case GgufKind::gpt2:  // gpt2_config()
      break;
    case GgufKind::gemma3:
      json["model_type"] = "gemma3_text";
      json["hidden_activation"] = "gelu_pytorch_tanh";
      json["query_pre_attn_scalar"] = head;
      json["sliding_window"] = values.size("attention.sliding_window");
      json["sliding_window_pattern"] = 6;
      json["rope_local_base_freq"] = 1e4;
      // Gemma 3 27B (62 blocks) multiplies its attention scores by a different factor than the
      // smaller Gemma 3 models. GGUF files have no field for this factor.
      LONGHAND_CHECK(values.size("block_count") != 62, file.name(),
                     ": expected a Gemma 3 model of at most 12 billion parameters");
  }
  return json;
}

std::string gguf_tokenizer(const GgufFile& file) {
  const std::string_view model = file.string("tokenizer.ggml.model");
  const bool gemma = model == "llama";
  LONGHAND_CHECK(model == "gpt2" || (gemma && kind_of(file) == GgufKind::gemma3), file.name(),
                 ": tokenizer.ggml.model: expected gpt2 (byte-level merges), or llama for a Gemma "
                 "model, got ",
                 quote(model));
  const std::vector<std::string_view> tokens = file.strings("tokenizer.ggml.tokens");
  const std::vector<std::int64_t> types = file.integers("tokenizer.ggml.token_type");
  LONGHAND_CHECK(types.size() == tokens.size(), file.name(),
                 ": tokenizer.ggml.token_type: expected ", tokens.size(), " types, got ",
                 types.size());
  std::vector<std::string> contents;
  std::string vocabulary, added;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const std::int64_t type = types[id];
    std::string& content = contents.emplace_back(tokens[id]);
    LONGHAND_CHECK(find_broken_utf8(content) == std::string::npos, file.name(), ": token ", id,
                   ": expected UTF-8, got ", quote(content));
    // Long tokens are rejected because merges_of() looks up every split of a token into two parts,
    // which takes time quadratic in the token's length.
    LONGHAND_CHECK(!gemma || content.size() <= longest_cut_token, file.name(), ": token ", id,
                   ": expected at most ", longest_cut_token, " bytes, got ", content.size());
    // User-defined tokens of GGUF files contain a space where tokenizer.json has space_mark.
    if (gemma && type == gguf_token::by_user) content = replaced_all(content, " ", space_mark);
    vocabulary += text(id ? "," : "", json_string(content), ':', id);
    if (type == gguf_token::control || type == gguf_token::by_user) {
      added +=
          text(added.empty() ? "" : ",", added_token(id, content, type == gguf_token::control));
    }
  }
  if (gemma) return joined(gemma_pipeline(file, tokens), added, vocabulary, merges_of(contents));
  std::string merges;
  for (const std::string_view merge : file.strings("tokenizer.ggml.merges")) {
    LONGHAND_CHECK(find_broken_utf8(merge) == std::string_view::npos, file.name(),
                   ": tokenizer.ggml.merges: expected UTF-8, got ", quote(merge));
    merges += text(merges.empty() ? "" : ",", json_string(merge));
  }
  return joined(byte_level_pipeline(file, tokens), added, vocabulary, merges);
}

std::unique_ptr<Weights> gguf_weights(std::shared_ptr<const GgufFile> file) {
  return std::make_unique<GgufWeights>(std::move(file));
}

}  // namespace longhand::nn
