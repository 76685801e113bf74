#include "nn/models/gguf_export.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/gguf_writer.h"
#include "core/quote.h"
#include "nn/models/gguf_names.h"
#include "nn/models/llama_form.h"
#include "nn/text/byte_map.h"
#include "nn/text/encoder.h"

namespace longhand::nn {
namespace {

/// Returns the value of general.file_type, the code for the type of most tensors.
std::uint32_t file_type_of(const GgufType& type) {
  if (type.name == "F16") return 1;
  if (type.name == "Q4_0") return 2;
  if (type.name == "Q8_0") return 7;
  if (type.name == "Q4_K") return 14;
  if (type.name == "BF16") return 32;
  return 0;
}

GgufKind exported_kind(const Family& family) {
  const bool gemma = family.type == "gemma3_text";
  const auto kind = gguf_kind(gemma ? "gemma3" : family.type);
  LONGHAND_CHECK(kind, "GGUF: expected a model of the family llama, qwen2, gemma3_text or ",
                 "gpt2, got ", family.type);
  return *kind;
}

/// Checks the options for which GGUF files of this family have no fields. Programs that read such a
/// file assume a fixed value for each of these options. Throws an Error if the model has another
/// value. The caller must have checked that the model has the family's form (Family::json).
void check_options(const DecoderConfig& config, GgufKind kind) {
  const std::string_view name = architecture_of(kind);
  const bool gelu = kind == GgufKind::gemma3 || kind == GgufKind::gpt2;
  const Activation activation = gelu ? Activation::gelu_tanh : Activation::silu;
  LONGHAND_CHECK(config.activation == activation, "GGUF: expected the activation ",
                 name_of(activation), " for ", name, ", got ", name_of(config.activation));
  if (kind == GgufKind::gpt2) {
    const double scale = plain_heads(config, name).options->scores.scale;
    LONGHAND_CHECK(scale == 0, "GGUF: expected a score scale of 1/sqrt(width), got ", scale);
    return;
  }
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const SoftmaxHeads& heads = heads_of(config, i);
    const RopeOptions& rope = heads.rope;
    if (kind == GgufKind::gemma3) {
      const bool full = (i + 1) % 6 == 0;
      LONGHAND_CHECK((heads.window == 0) == full,
                     "GGUF: expected full attention in every sixth layer and windows in all "
                     "others, got another order in layer ",
                     i);
      LONGHAND_CHECK(rope.factor == 1 && (full || rope.base == 1e4),
                     "GGUF: expected rotary positions that are not stretched, and the base "
                     "10000 in layers with windows, got other rotary positions in layer ",
                     i);
      LONGHAND_CHECK(
          std::abs(heads.scores.scale * heads.scores.scale * static_cast<double>(heads.width) - 1) <
              1e-9,
          "GGUF: expected a score scale of 1/sqrt(", heads.width, "), got ", heads.scores.scale);
    } else {
      LONGHAND_CHECK(heads.window == 0, "GGUF: expected heads that see all keys, got a window of ",
                     heads.window);
    }
    const RopeOptions llama3;
    LONGHAND_CHECK(
        rope.factor == 1 || (kind == GgufKind::llama && rope.low == llama3.low &&
                             rope.high == llama3.high && rope.original == llama3.original),
        "GGUF: expected rotary positions that are not stretched, or stretched as "
        "in Llama 3, got other rotary positions");
  }
  if (kind == GgufKind::gemma3) {
    LONGHAND_CHECK(!config.projection_bias,
                   "GGUF: expected a gemma3 without biases, got one with biases");
    LONGHAND_CHECK(
        config.layers != 62,
        "GGUF: expected a gemma3 with a number of layers other than 62, because programs "
        "that read GGUF files scale the attention scores of models with 62 layers differently");
  }
}

void put_options(GgufWriter& writer, const DecoderConfig& config, GgufKind kind) {
  const std::string name(architecture_of(kind));
  const auto put = [&](const char* key, std::int64_t value) {
    writer.integer(name + '.' + key, static_cast<std::uint32_t>(value));
  };
  const auto put_number = [&](const char* key, double value) {
    writer.number(name + '.' + key, static_cast<float>(value));
  };
  put("vocab_size", config.vocabulary);
  put("context_length", config.longest);
  put("embedding_length", config.width);
  put("block_count", config.layers);
  put("feed_forward_length", config.inner);
  if (kind == GgufKind::gpt2) {
    put("attention.head_count", plain_heads(config, name).heads);
    put_number("attention.layer_norm_epsilon", config.epsilon);
    return;
  }
  const SoftmaxHeads& heads = heads_of(config, 0);
  put("attention.head_count", heads.heads);
  put("attention.head_count_kv", heads.key_heads);
  put("attention.key_length", heads.width);
  put("attention.value_length", heads.width);
  put_number("attention.layer_norm_rms_epsilon", config.epsilon);
  put("rope.dimension_count", heads.width);
  // The file of a Gemma model contains the base of the rotary frequencies for layers with full
  // attention. If the model has no such layer, no layer uses this base. In this case, Gemma's usual
  // base 1e6 is written.
  double base = kind == GgufKind::gemma3 ? 1e6 : heads.rope.base;
  for (std::int64_t i = 0; i < config.layers; ++i) {
    if (heads_of(config, i).window == 0) base = heads_of(config, i).rope.base;
  }
  put_number("rope.freq_base", base);
  if (kind == GgufKind::gemma3) put("attention.sliding_window", heads.window);
}

/// A tokenizer may encode a word that is itself a token as this token, without merging. Programs
/// that read GGUF files assume this if words are split as in Llama 3, and otherwise assume that
/// such words are merged too. If the tokenizer differs from this assumption, throws an Error unless
/// both ways encode the text of every token equally.
void check_whole_words(const Tokenizer& tokenizer) {
  TokenizerParts parts = tokenizer.parts();
  const bool theirs = parts.pattern == WordPattern::llama3;
  if (std::exchange(parts.whole_words, theirs) == theirs) return;
  const Tokenizer other(std::move(parts));
  Encoder ours(tokenizer), read(other);
  for (TokenId id = 0; id < tokenizer.size(); ++id) {
    const std::string_view bytes = tokenizer.parts().tokens.bytes(id);
    const Encoder::Options plain{.around = false, .ranges = false};
    LONGHAND_CHECK(ours.encode(bytes, plain) == read.encode(bytes, plain),
                   "GGUF: tokenizer: expected \"ignore_merges\" to be ", theirs ? "true" : "false",
                   ", as programs that read GGUF files assume; these programs would encode ",
                   quote(bytes), " differently");
  }
}

/// The value of tokenizer.ggml.pre: the name of the pattern that splits a text into words, for a
/// byte-level tokenizer.
std::string_view name_of_words(WordPattern pattern) {
  switch (pattern) {
    case WordPattern::gpt2:
      return "gpt-2";
    case WordPattern::llama3:
      return "llama-bpe";
    case WordPattern::qwen2:
      return "qwen2";
    case WordPattern::digits_gpt2:
      return "smollm";
    case WordPattern::spaces:
      break;
  }
  fail("GGUF: tokenizer: expected a byte-level tokenizer, got the tokenizer of Gemma");
}

/// Throws an Error if the merges of Gemma's tokenizer are not those that readers derive from its
/// tokens: each pair of tokens whose concatenation is a token, sorted by the id of the
/// concatenation.
void check_merges(const TokenizerParts& parts) {
  std::size_t expected = 0;
  for (TokenId id = 0; id < parts.tokens.size(); ++id) {
    if (!parts.tokens.findable(id)) continue;
    const std::string_view whole = parts.tokens.bytes(id);
    for (std::size_t cut = 1; cut < whole.size(); ++cut) {
      const auto left = parts.tokens.find(whole.substr(0, cut));
      const auto right = parts.tokens.find(whole.substr(cut));
      if (left && right && parts.merges.find(*left, *right).whole == id) ++expected;
    }
  }
  const std::vector<MergeTable::Pair> merges = parts.merges.sorted();
  LONGHAND_CHECK(expected == merges.size() &&
                     std::ranges::is_sorted(
                         merges, {}, [](const MergeTable::Pair& pair) { return pair.merge.whole; }),
                 "GGUF: tokenizer: expected the merges of a SentencePiece vocabulary, sorted "
                 "by the id of their results, got other merges");
}

/// Writes the tokenizer for a model whose vocabulary has `size` ids. An id without a token is
/// written as an unused token.
void put_tokenizer(GgufWriter& writer, const Tokenizer& tokenizer, std::int64_t size) {
  const TokenizerParts& parts = tokenizer.parts();
  const bool spaces = parts.pattern == WordPattern::spaces;
  LONGHAND_CHECK(parts.after.empty() && parts.before.size() <= 1,
                 "GGUF: tokenizer: expected at most one token that is added before each text, "
                 "and no token after the text, got ",
                 parts.before.size(), " tokens before and ", parts.after.size(),
                 " tokens after the text");
  std::vector<std::string> texts;
  std::vector<std::int32_t> types;
  for (std::int64_t i = 0; i < size; ++i) {
    const auto id = static_cast<TokenId>(i);
    const bool known = parts.tokens.has(id);
    const std::string_view bytes = known ? parts.tokens.bytes(id) : std::string_view();
    texts.push_back(!known   ? text("[PAD", id, ']')
                    : spaces ? replaced_all(bytes, " ", space_mark)
                             : byte_map.text(bytes));
    types.push_back(known ? gguf_token::normal : gguf_token::unused);
  }
  const auto below = [&](TokenId id) { return static_cast<std::int64_t>(id) < size; };
  for (unsigned value = 0; spaces && value < 256; ++value) {
    const TokenId id = tokenizer.byte_token(static_cast<unsigned char>(value));
    if (id != Tokenizer::none && below(id)) types[id] = gguf_token::byte;
  }
  for (const auto* const list : {&parts.added, &parts.added_late}) {
    for (const AddedToken& token : *list) {
      if (!below(token.id)) continue;
      types[token.id] = token.special ? gguf_token::control : gguf_token::by_user;
      // In GGUF files, user-defined tokens contain a space in place of space_mark.
      texts[token.id] =
          spaces && !token.special ? replaced_all(token.content, space_mark, " ") : token.content;
    }
  }
  writer.text("tokenizer.ggml.model", spaces ? "llama" : "gpt2");
  if (!spaces) {
    check_whole_words(tokenizer);
    writer.text("tokenizer.ggml.pre", name_of_words(parts.pattern));
  }
  writer.texts("tokenizer.ggml.tokens", texts);
  writer.integers("tokenizer.ggml.token_type", types);
  if (spaces) {
    check_merges(parts);
    std::vector<float> scores(texts.size());
    for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = -static_cast<float>(i);
    writer.numbers("tokenizer.ggml.scores", scores);
    writer.boolean("tokenizer.ggml.add_space_prefix", false);
  } else {
    std::vector<std::string> merges;
    for (const MergeTable::Pair& pair : parts.merges.sorted()) {
      const TokenId highest = std::max({pair.left, pair.right, pair.merge.whole});
      LONGHAND_CHECK(below(highest), "GGUF: tokenizer: expected merges of tokens below ", size,
                     ", the vocabulary of the model, got a merge with token ", highest);
      merges.push_back(text(byte_map.text(parts.tokens.bytes(pair.left)), ' ',
                            byte_map.text(parts.tokens.bytes(pair.right))));
    }
    writer.texts("tokenizer.ggml.merges", merges);
  }
  writer.boolean("tokenizer.ggml.add_bos_token", !parts.before.empty());
}

void put_texts(GgufWriter& writer, const GgufContents& contents, GgufKind kind,
               std::int64_t vocabulary) {
  if (contents.tokenizer) {
    LONGHAND_CHECK(contents.tokenizer->byte_level() || kind == GgufKind::gemma3,
                   "GGUF: expected a byte-level tokenizer for ", architecture_of(kind),
                   ", got the tokenizer of Gemma");
    put_tokenizer(writer, *contents.tokenizer, vocabulary);
  } else {
    writer.text("tokenizer.ggml.model", gguf_no_tokenizer);
  }
  const TextTokens& tokens = contents.tokens;
  LONGHAND_CHECK(tokens.ends.size() <= gguf_end_keys.size(), "GGUF: expected at most ",
                 gguf_end_keys.size(), " tokens that end a text, got ", tokens.ends.size());
  std::optional<std::int32_t> begin = tokens.begin;
  if (contents.tokenizer && !contents.tokenizer->parts().before.empty()) {
    begin = static_cast<std::int32_t>(contents.tokenizer->parts().before.front());
  }
  if (begin) {
    writer.integer("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(*begin));
  }
  for (std::size_t i = 0; i < tokens.ends.size(); ++i) {
    writer.integer(gguf_end_keys[i], static_cast<std::uint32_t>(tokens.ends[i]));
  }
  if (!contents.chat_template.empty()) {
    writer.text("tokenizer.chat_template", contents.chat_template);
  }
}

/// A tensor in the layout of the file.
struct Laid {
  Exchange exchange;
  GgufTensorName name;
  const GgufType* type;
  bool is_matrix = false;  // false for vectors and position embeddings
  // Row r of the file is row rows[r] of our tensor; empty: rows have the same order.
  std::vector<std::int64_t> rows = {};

  Tensor value() const { return exchange.piece(exchange.ours.value()); }
};

Laid laid(const Exchange& exchange, GgufKind kind, const DecoderConfig& config,
          const GgufType& matrices) {
  const std::string& theirs = exchange.names.front();
  const auto name = gguf_tensor_name(theirs, kind);
  LONGHAND_CHECK(name, "GGUF: ", architecture_of(kind), " has no tensor ", quote(theirs));
  const Shape shape = exchange.piece(exchange.ours.value()).shape();
  Laid all{exchange, *name, written_gguf_type("f32")};
  all.is_matrix = shape.rank() == 2 && name->name != "position_embd.weight";
  if (all.is_matrix) all.type = &stored_type(matrices, shape.back());
  const bool replaceable = all.type->block == 256;
  const GgufType& smallest = replaceable ? *written_gguf_type("q8_0") : *all.type;
  LONGHAND_CHECK(shape.rank() > 0 && shape.back() % all.type->block == 0, "GGUF: tensor ",
                 quote(name->name), ": expected a row length that is a multiple of ",
                 smallest.block, ", the block size of ", small_name(smallest),
                 replaceable ? text(", which replaces ", small_name(*all.type),
                                    " for rows that are no multiple of 256")
                             : "",
                 ", got ", shape.back());
  if (!name->paired && exchange.rows.empty()) return all;
  std::int64_t half = 0;
  if (name->paired) {
    const SoftmaxHeads& heads = heads_of(config, 0);
    half = heads.width / 2;
  }
  all.rows.resize(static_cast<std::size_t>(shape.front()));
  for (std::int64_t r = 0; r < shape.front(); ++r) {
    const std::int64_t row = exchange.rows.empty() ? r : exchange.rows[static_cast<std::size_t>(r)];
    all.rows[static_cast<std::size_t>(name->paired ? paired_row(row, half) : row)] = r;
  }
  return all;
}

/// Encodes a tensor and passes its bytes to `give`, several rows per call.
void give_tensor(const Laid& tensor, const GgufWriter::Give& give) {
  const Tensor value = tensor.value();
  const std::int64_t rows = value.shape().front(), width = value.size() / rows;
  const std::int64_t step = std::max<std::int64_t>(1, (1 << 18) / width);
  const std::vector<double> whole =
      tensor.rows.empty() ? std::vector<double>() : value.to_doubles();
  std::vector<std::byte> blocks;
  for (std::int64_t first = 0; first < rows; first += step) {
    const std::int64_t count = std::min(step, rows - first);
    std::vector<double> numbers;
    if (tensor.rows.empty()) {
      numbers = value.slice(first, count).to_doubles();
    } else {
      for (std::int64_t r = first; r < first + count; ++r) {
        const auto* const row = whole.data() + tensor.rows[static_cast<std::size_t>(r)] * width;
        numbers.insert(numbers.end(), row, row + width);
      }
    }
    if (tensor.name.plus_one) {
      for (double& number : numbers) number += 1;
    }
    blocks.resize(numbers.size() / static_cast<std::size_t>(tensor.type->block) *
                  tensor.type->bytes);
    encode_gguf(*tensor.type, numbers, blocks);
    give(blocks);
  }
}

void put_tensor(GgufWriter& writer, Laid tensor, const std::string& file) {
  const Shape shape = tensor.value().shape();
  std::vector<std::uint64_t> extents;
  for (int axis = shape.rank(); axis-- > 0;) {
    extents.push_back(static_cast<std::uint64_t>(shape[axis]));
  }
  const std::string name = tensor.name.name;
  const GgufType& type = *tensor.type;
  const auto size = static_cast<std::uint64_t>(shape.size() / type.block) * type.bytes;
  writer.tensor(name, extents, type.code, size,
                [tensor = std::move(tensor), file](const GgufWriter::Give& give) {
                  try {
                    give_tensor(tensor, give);
                  } catch (const Error& error) {
                    fail(file, ": tensor ", quote(tensor.name.name), ": ", error.what());
                  }
                });
}

/// Writes the divisors of the rotary frequencies of a Llama model whose long wavelengths are
/// lengthened (RopeOptions::factor).
void put_divisors(GgufWriter& writer, const SoftmaxHeads& heads) {
  RopeOptions plain = heads.rope;
  plain.factor = 1;
  const std::vector<double> full = plain.frequencies(heads.width);
  const std::vector<double> stretched = heads.rope.frequencies(heads.width);
  std::vector<float> divisors;
  for (std::size_t p = 0; p < full.size(); ++p) {
    const double ratio = full[p] / stretched[p];
    // Frequencies are rounded to f32, so their ratio may differ slightly from the factor. In this
    // case, the exact factor is written.
    const bool is_factor = std::abs(ratio - heads.rope.factor) < 1e-6 * heads.rope.factor;
    divisors.push_back(static_cast<float>(is_factor ? heads.rope.factor : ratio));
  }
  LONGHAND_CHECK(divisors.back() == static_cast<float>(heads.rope.factor),
                 "GGUF: expected rope_factor (", heads.rope.factor,
                 ") as the divisor of the lowest rotary frequency, got ", divisors.back());
  const std::uint64_t count = divisors.size();
  writer.tensor("rope_freqs.weight", std::span(&count, 1), written_gguf_type("f32")->code,
                count * sizeof(float), [divisors](const GgufWriter::Give& give) {
                  give(std::as_bytes(std::span(divisors)));
                });
}

}  // namespace

const GgufType& stored_type(const GgufType& wanted, std::int64_t row_length) {
  const GgufType& wider = *written_gguf_type("q8_0");
  const bool replaced = wanted.block == 256 && row_length % 256 != 0 && row_length % 32 == 0;
  return replaced ? wider : wanted;
}

ExportedGguf export_gguf(const Decoder& decoder, const std::filesystem::path& file,
                         const GgufContents& contents) {
  const DecoderConfig& config = decoder.config();
  const Family& family = family_of(config);
  const GgufKind kind = exported_kind(family);
  family.json(config);  // throws an Error if the model does not have the family's form
  check_options(config, kind);
  LONGHAND_CHECK(decoder.adapters().empty(),
                 "expected a model whose adapters are merged, got a model with adapters");
  GgufWriter writer;
  writer.text("general.architecture", architecture_of(kind));
  writer.integer("general.file_type", file_type_of(*contents.type));
  if (contents.type->block > 1) writer.integer("general.quantization_version", 2);
  put_options(writer, config, kind);
  put_texts(writer, contents, kind, config.vocabulary);
  if (kind == GgufKind::llama && heads_of(config, 0).rope.factor != 1) {
    put_divisors(writer, heads_of(config, 0));
  }
  ExportedGguf exported{.architecture = architecture_of(kind)};
  for (const Exchange& exchange : family.tensors(decoder)) {
    Laid tensor = laid(exchange, kind, config, *contents.type);
    if (tensor.is_matrix) {
      ++exported.matrices;
      if (tensor.type != contents.type) ++exported.replaced;
    }
    put_tensor(writer, std::move(tensor), file.string());
  }
  AtomicFile made(file);
  writer.write([&](std::span<const std::byte> bytes) { made.write(bytes); });
  made.commit();
  return exported;
}

}  // namespace longhand::nn
