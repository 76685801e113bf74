// Tests GGUF files: the container, the quantized block formats, and a model that must equal the
// same model in Hugging Face's format.
#include "nn/models/gguf.h"

#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/safetensors.h"
#include "nn/models/hugging_face.h"
#include "nn/text/encoder.h"
#include "nn/text/tokenizer_json.h"
#include "tests/check.h"
#include "tests/gguf_writer.h"
#include "tests/paths.h"
#include "tests/program.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(gguf_test)

using namespace longhand;
using namespace longhand::nn;

namespace {

std::string golden(const std::string& name) { return std::string(test_data) + "/golden/" + name; }

GgufFile parse(const std::string& bytes) {
  return GgufFile::parse(std::as_bytes(std::span(bytes)), "x");
}

std::string refusal(const std::string& bytes) {
  return longhand::refusal([&] { parse(bytes); });
}

std::string chars(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

GgufText small() {
  GgufText writer;
  writer.text("general.architecture", "llama");
  writer.integer("count", 7);
  writer.number("half", 0.5f);
  writer.texts("words", {"a", "", "ccc"});
  writer.integers("types", {1, 3, -1});
  const float numbers[6] = {1, 2, 3, 4, 5, 6};
  writer.tensor("t", {3, 2}, 0, chars(std::as_bytes(std::span(numbers))));
  writer.tensor("u", {1}, 0, chars(std::as_bytes(std::span(numbers).first(1))));
  return writer;
}

/// A small Llama of tests/golden in the format of Hugging Face.
struct GoldenLlama {
  SafetensorsFile published = SafetensorsFile::open(golden("llama_tied.safetensors"));
  ForeignConfig foreign = parse_config(published.metadata().at("config"), "golden");
  std::unique_ptr<Weights> weights =
      weights_of(SafetensorsParts(SafetensorsFile::open(published.name())));
};

/// Returns the weights of queries or keys in GGUF's order of rows. There, a row of the first half
/// of a head is followed by the corresponding row of the second half.
std::vector<float> interleaved(const std::vector<double>& numbers, std::int64_t columns,
                               std::int64_t head_width) {
  std::vector<float> floats(numbers.size());
  const auto width = static_cast<std::size_t>(columns);
  const auto half = static_cast<std::size_t>(head_width / 2);
  for (std::size_t row = 0; row < numbers.size() / width; ++row) {
    const std::size_t head = row / (2 * half), s = row % (2 * half) / half, i = row % half;
    for (std::size_t c = 0; c < width; ++c) {
      floats[(head * 2 * half + 2 * i + s) * width + c] =
          static_cast<float>(numbers[row * width + c]);
    }
  }
  return floats;
}

/// Writes a small Llama of tests/golden as a GGUF file without a tokenizer.
GgufText written(const GoldenLlama& llama) {
  const ForeignConfig& foreign = llama.foreign;
  const auto& heads = dynamic_cast<const SoftmaxHeads&>(*foreign.config.mixers[0][0]);
  GgufText writer;
  const auto size = [](std::int64_t n) { return static_cast<std::uint32_t>(n); };
  writer.text("general.architecture", "llama");
  writer.integer("llama.block_count", size(foreign.config.layers));
  writer.integer("llama.context_length", 256);
  writer.integer("llama.embedding_length", size(foreign.config.width));
  writer.integer("llama.feed_forward_length", size(foreign.config.inner));
  writer.integer("llama.attention.head_count", size(heads.heads));
  writer.integer("llama.attention.head_count_kv", size(heads.key_heads));
  writer.integer("llama.attention.key_length", size(heads.width));
  writer.integer("llama.attention.value_length", size(heads.width));
  writer.number("llama.attention.layer_norm_rms_epsilon",
                static_cast<float>(foreign.config.epsilon));
  writer.number("llama.rope.freq_base", static_cast<float>(heads.rope.base));
  const std::vector<std::pair<std::string, std::string>> parts{
      {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
      {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
      {"attn_output", "self_attn.o_proj"}, {"ffn_norm", "post_attention_layernorm"},
      {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
      {"ffn_down", "mlp.down_proj"}};
  const auto put = [&](const std::string& here, const std::string& there) {
    const StoredTensor stored = llama.weights->at(std::vector{there});
    std::vector<double> numbers(static_cast<std::size_t>(stored.shape.size()));
    stored.read(0, numbers);
    const bool paired = here.ends_with("attn_q.weight") || here.ends_with("attn_k.weight");
    const std::vector<float> floats = paired
                                          ? interleaved(numbers, stored.shape.back(), heads.width)
                                          : std::vector<float>(numbers.begin(), numbers.end());
    std::vector<std::uint64_t> shape;
    for (int axis = stored.shape.rank() - 1; axis >= 0; --axis) {
      shape.push_back(static_cast<std::uint64_t>(stored.shape[axis]));
    }
    writer.tensor(here, shape, 0, chars(std::as_bytes(std::span(floats))));
  };
  put("token_embd.weight", "model.embed_tokens.weight");
  put("output_norm.weight", "model.norm.weight");
  for (std::int64_t layer = 0; layer < foreign.config.layers; ++layer) {
    for (const auto& [here, there] : parts) {
      put(text("blk.", layer, '.', here, ".weight"),
          text("model.layers.", layer, '.', there, ".weight"));
    }
  }
  return writer;
}

}  // namespace

BOOST_AUTO_TEST_CASE(written_values_and_tensors_are_read_back) {
  for (const std::uint32_t version : {2u, 3u}) {
    const std::string bytes = small().file(version);
    const GgufFile file = parse(bytes);
    BOOST_TEST(file.string("general.architecture") == "llama");
    BOOST_TEST(file.integer("count") == 7u);
    BOOST_TEST(file.number("half") == 0.5);
    BOOST_TEST(file.number("count") == 7.0);
    BOOST_TEST((file.strings("words") == std::vector<std::string_view>{"a", "", "ccc"}));
    BOOST_TEST((file.integers("types") == std::vector<std::int64_t>{1, 3, -1}));
    const GgufFile::Entry* const t = file.find("t");
    BOOST_REQUIRE(t);
    BOOST_TEST((t->shape == Shape{2, 3}));
    std::vector<double> numbers(2);
    decode_gguf(*t->type, t->bytes, 3, numbers);
    BOOST_TEST((numbers == std::vector<double>{4, 5}));
    BOOST_CHECK_THROW(decode_gguf(*t->type, t->bytes, 5, numbers), Error);
    for (const char* key : {"absent", "half", "words"}) BOOST_CHECK_THROW(file.string(key), Error);
    BOOST_CHECK_THROW(file.integer("half"), Error);
    BOOST_CHECK_THROW(file.integers("words"), Error);
    BOOST_CHECK_THROW(file.strings("types"), Error);
  }
}

BOOST_AUTO_TEST_CASE(quantized_blocks_are_decoded_as_by_their_authors) {
  const SafetensorsFile file = SafetensorsFile::open(golden("gguf_blocks.safetensors"));
  for (const std::uint32_t code : {2u, 3u, 6u, 7u, 8u, 12u, 13u, 14u}) {
    const GgufType& type = *gguf_type(code);
    BOOST_TEST_CONTEXT(type.name) {
      const auto& blocks = file.at(std::string(type.name) + ".blocks");
      const auto& right = file.at(std::string(type.name) + ".numbers");
      std::vector<float> expected(static_cast<std::size_t>(right.shape.size()));
      std::memcpy(expected.data(), right.bytes.data(), right.bytes.size());
      BOOST_TEST(std::ssize(expected) == 4 * type.block);
      std::vector<double> numbers(expected.size());
      decode_gguf(type, blocks.bytes, 0, numbers);
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        // A decoded number is a product, which other programs may round in another way.
        BOOST_REQUIRE(std::abs(numbers[i] - expected[i]) <= 1e-5 * (1 + std::abs(expected[i])));
      }
      std::vector<double> middle(static_cast<std::size_t>(type.block) + 3);
      decode_gguf(type, blocks.bytes, type.block - 2, middle);
      BOOST_TEST(std::ranges::equal(
          middle,
          std::span(numbers).subspan(static_cast<std::size_t>(type.block) - 2, middle.size())));
    }
  }
  for (const std::uint32_t code : {4u, 9u, 10u, 11u, 31u}) BOOST_TEST(!gguf_type(code));
}

BOOST_AUTO_TEST_CASE(a_broken_file_is_refused_with_its_reason) {
  BOOST_TEST(refusal("") == "x: expected 4 more bytes from byte 0 on, got 0");
  BOOST_TEST(refusal("GGML....") == "x: expected a GGUF file, got another kind of file");
  BOOST_TEST(refusal(small().file(1)) == "x: expected GGUF version 2 or 3, got 1");
  const auto with = [](const std::vector<std::uint64_t>& shape, std::uint32_t type) {
    GgufText writer;
    writer.tensor("t", shape, type, std::string(32, 'x'));
    return refusal(writer.file());
  };
  BOOST_TEST(with({8}, 0) == "accepted");
  BOOST_TEST(contains(with({9}, 0), "9 blocks from byte 0 on, got a file with 32 bytes of data"));
  BOOST_TEST(contains(with({8}, 2), "a multiple of the block size 32, got 8"));
  BOOST_TEST(contains(with({8}, 10), "got type 10"));
  BOOST_TEST(contains(with({1, 1, 1, 1, 1}, 0), "at most 4 axes"));
  BOOST_TEST(contains(with({1ull << 62, 4}, 0), "fewer than 2^63 elements"));
  const std::string bytes = small().file();
  for (std::size_t length = 0; length + 32 < bytes.size(); ++length) {
    BOOST_TEST(refusal(bytes.substr(0, length)) != "accepted");
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const int value : {0, 1, 127, 255}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(value);
      BOOST_TEST(refusal(changed).find('\n') == std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_llama_is_the_same_model_as_gguf_and_as_safetensors) {
  const auto backend = make_reference_backend();
  GoldenLlama llama;
  Decoder theirs(*backend, llama.foreign.config, 0);
  read_tensors(*llama.weights, llama.foreign.family->tensors(theirs));
  const std::string bytes = written(llama).file();
  const GgufFile file = parse(bytes);
  const ForeignConfig again = parse_config(gguf_config(file).dump(), "x");
  BOOST_TEST(again.family->type == "llama");
  Decoder ours(*backend, again.config, 0);
  read_tensors(*gguf_weights(std::make_shared<const GgufFile>(parse(bytes))),
               again.family->tensors(ours));
  BOOST_TEST(ours.parameters().all().size() == theirs.parameters().all().size());
  for (std::size_t i = 0; i < ours.parameters().all().size(); ++i) {
    const Parameter& a = ours.parameters().all()[i];
    const Parameter& b = theirs.parameters().all()[i];
    BOOST_TEST_CONTEXT(a.name()) { BOOST_TEST((a.value().to_doubles() == b.value().to_doubles())); }
  }
}

BOOST_AUTO_TEST_CASE(generate_and_chat_read_a_gguf_file_as_an_imported_run) {
  const GoldenLlama llama;
  GgufText writer = written(llama);
  const Program program;
  write_atomically(program.folder / "numbers.gguf", writer.file());
  writer.text("tokenizer.ggml.model", "gpt2");
  writer.text("tokenizer.ggml.pre", "smollm");
  std::vector<std::string> tokens{"<|end|>", "a", "b", "\u0120", "1", "ab"};
  while (std::ssize(tokens) < llama.foreign.config.vocabulary) {
    tokens.push_back(text("word", tokens.size()));
  }
  writer.texts("tokenizer.ggml.tokens", tokens);
  writer.integers("tokenizer.ggml.token_type", std::vector<std::int32_t>(tokens.size(), 1));
  writer.texts("tokenizer.ggml.merges", {"a b"});
  write_atomically(program.folder / "words.gguf", writer.file());
  const auto same = [&](const std::string& command, const std::string& name,
                        const std::string& words) {
    const Program::Outcome direct = program(command + " " + name + ".gguf " + words);
    BOOST_TEST(direct.status == 0, direct.err);
    BOOST_TEST(direct.out.size() > 8u);
    BOOST_TEST(direct.out == program(command + " " + name + " " + words).out);
  };
  for (const char* name : {"numbers", "words"}) {
    program.json(text("import ", name, ".gguf --out ", name, " --json"));
  }
  same("generate", "numbers", "--prompt '3 1 4' --tokens 8");
  same("generate", "words", "--prompt 'ab 1' --tokens 8");
  write_atomically(program.folder / "lines", "ab\n1\n");
  same("chat", "words", "--tokens 8 <lines");
  program.refuses(1, "chat numbers.gguf", "expected a run of the task \"text\"");
  program.refuses(1, "chat nope.gguf", "nope.gguf: expected a run folder or a GGUF file");
  program.refuses(1, "generate words.gguf --prompt a --step 3", "--step selects a checkpoint");
}

BOOST_AUTO_TEST_CASE(tokenizers_are_read_from_the_file) {
  GgufText writer;
  writer.text("general.architecture", "llama");
  writer.text("tokenizer.ggml.model", "gpt2");
  writer.text("tokenizer.ggml.pre", "smollm");
  std::vector<std::string> tokens{"<|end|>", "a", "b", "\u0120", "1", "ab"};
  writer.texts("tokenizer.ggml.tokens", tokens);
  writer.integers("tokenizer.ggml.token_type", {3, 1, 1, 1, 1, 1});
  writer.texts("tokenizer.ggml.merges", {"a b"});
  const std::string bytes = writer.file();
  const Tokenizer tokenizer = parse_tokenizer_json(gguf_tokenizer(parse(bytes)), "x");
  BOOST_TEST(
      (Encoder(tokenizer).encode("ab 11<|end|>b") == std::vector<TokenId>{5, 3, 4, 4, 0, 2}));

  GgufText gemma;
  gemma.text("general.architecture", "gemma3");
  gemma.text("tokenizer.ggml.model", "llama");
  tokens = {"<pad>", "<bos>", "<unk>", "a", "b", "\u2581", "ab", "\u2581a"};
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
    tokens.emplace_back(name);
  }
  std::vector<std::int32_t> types(tokens.size(), 1);
  types[0] = types[1] = types[2] = 3;
  gemma.texts("tokenizer.ggml.tokens", tokens);
  gemma.integers("tokenizer.ggml.token_type", types);
  gemma.integer("tokenizer.ggml.bos_token_id", 1);
  const std::string second = gemma.file();
  const std::string text = gguf_tokenizer(parse(second));
  const Tokenizer marked = parse_tokenizer_json(text, "x");
  BOOST_TEST((Encoder(marked).encode("ab ac") == std::vector<TokenId>{1, 6, 7, 8 + 'c'}));
  // Hugging Face's reader of tokenizer.json requires the templates "single" and "pair" for one and
  // two texts. Each part of a template must have a type_id.
  const Json whole = Json::parse(text).value();
  const Json& around = whole["post_processor"];
  for (const auto& [name, parts] : {std::pair{"single", 2}, std::pair{"pair", 4}}) {
    BOOST_TEST(around[name].size() == static_cast<std::size_t>(parts));
    for (std::size_t i = 0; i < around[name].size(); ++i) {
      const Json& part = around[name][i].members()[0].second;
      BOOST_TEST(part["id"] == (i % 2 == 0 ? "<bos>" : i == 1 ? "A" : "B"));
      BOOST_TEST(part["type_id"] == static_cast<int>(i / 2));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
