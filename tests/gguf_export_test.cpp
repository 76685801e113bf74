// Tests GGUF files that longhand writes: the encoded blocks, models and tokenizers that are read
// back, and the command export --gguf.
#include "nn/models/gguf_export.h"

#include <cmath>

#include "autograd/tape.h"
#include "core/float16.h"
#include "core/gguf_file.h"
#include "nn/models/gguf.h"
#include "nn/models/peft.h"
#include "nn/text/chat_template.h"
#include "nn/text/encoder.h"
#include "nn/text/tokenizer_json.h"
#include "nn/training/checkpoint.h"
#include "nn/training/parts.h"
#include "tests/gguf_writer.h"
#include "tests/golden.h"
#include "tests/program.h"
#include "tests/random_tensor.h"
#include "tests/refusal.h"
#include "tests/replaced.h"
#include "tests/small_tokenizer.h"

namespace gguf_export_test {

using namespace longhand;
using namespace longhand::nn;
namespace fs = std::filesystem;

std::vector<std::byte> encoded(const GgufType& type, std::span<const double> numbers) {
  std::vector<std::byte> blocks(numbers.size() / static_cast<std::size_t>(type.block) * type.bytes);
  encode_gguf(type, numbers, blocks);
  return blocks;
}

std::vector<double> decoded(const GgufType& type, std::span<const std::byte> blocks) {
  std::vector<double> numbers(blocks.size() / type.bytes * static_cast<std::size_t>(type.block));
  decode_gguf(type, blocks, 0, numbers);
  return numbers;
}

/// Upper bound of the error of a number x that was encoded and read back. `largest` is the largest
/// absolute value in the block of x.
double bound(const GgufType& type, double x, double largest) {
  // Upper bound of the error of a number d that is rounded to f16. The second bound is for small d.
  const auto half = [](double d) { return std::max(std::abs(d) * 0x1p-11, 0x1p-25); };
  if (type.name == "F32") return std::abs(x) * 0x1p-24;
  if (type.name == "BF16") return std::abs(x) * 0x1p-8;
  if (type.name == "F16") return half(x);
  if (type.name == "Q8_0") return largest / 127 * 0.5001 + 127 * half(largest / 127);
  // Q4_K: errors in blocks of random numbers are at most 0.11 times the largest number. A number
  // may be 15 * 63 times the block's f16 factor, which multiplies the rounding error of the factor.
  if (type.name == "Q4_K") return largest / 6 + 15 * 63 * half(largest / (7 * 63));
  return largest / 8 * 1.0001 + 8 * half(largest / 8);  // the type is Q4_0
}

/// Checks the error of each number of a tensor that was encoded and read back. Rows consist of
/// whole blocks.
void check_bounds(const GgufType& type, std::span<const double> numbers,
                  std::span<const double> read) {
  BOOST_REQUIRE_EQUAL(numbers.size(), read.size());
  const auto block = static_cast<std::size_t>(type.block);
  for (std::size_t b = 0; b < numbers.size(); b += block) {
    double largest = 0;
    for (std::size_t i = b; i < b + block; ++i) largest = std::max(largest, std::abs(numbers[i]));
    for (std::size_t i = b; i < b + block; ++i) {
      BOOST_REQUIRE_MESSAGE(std::abs(numbers[i] - read[i]) <= bound(type, numbers[i], largest),
                            type.name << ": " << numbers[i] << " is read as " << read[i]);
    }
  }
}

DecoderConfig llama_config_of(const std::string& fields) {
  return parse_config(R"({"vocab_size": 40, "max_position_embeddings": 64,)" + fields + "}", "x")
      .config;
}

/// Small models with every feature that GGUF files can represent. The length of every row is a
/// multiple of 32.
std::vector<std::pair<std::string, DecoderConfig>> models() {
  const std::string sizes = R"("hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,)"
                            R"("num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,)";
  DecoderConfig groups = llama_config_of(
      R"("model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64)");
  // Divides the 4 heads of each layer into two groups, of one and of three heads. The export must
  // then change the order of rows.
  for (MixerList& mixers : groups.mixers) {
    SoftmaxHeads heads = dynamic_cast<const SoftmaxHeads&>(*mixers.front());
    heads.heads = heads.key_heads = 1;
    SoftmaxHeads others = heads;
    others.heads = others.key_heads = 3;
    mixers = {heads.clone(), others.clone()};
  }
  return {{"llama", llama_config_of(
                        sizes + R"("model_type": "llama", "tie_word_embeddings": true,)"
                                R"("rope_theta": 500000, "rope_scaling": {"rope_type": "llama3",)"
                                R"("factor": 10, "low_freq_factor": 1, "high_freq_factor": 4,)"
                                R"("original_max_position_embeddings": 8192})")},
          {"llama", llama_config_of(sizes + R"("model_type": "llama", "attention_bias": true,)"
                                            R"("mlp_bias": true, "rms_norm_eps": 1e-5)")},
          {"qwen2", llama_config_of(sizes + R"("model_type": "qwen2", "rope_theta": 1000000)")},
          {"gemma3", llama_config_of(R"("hidden_size": 32, "intermediate_size": 64,)"
                                     R"("num_attention_heads": 4, "num_key_value_heads": 2,)"
                                     R"("head_dim": 16, "query_pre_attn_scalar": 16,)"
                                     R"("num_hidden_layers": 7, "sliding_window": 5,)"
                                     R"("model_type": "gemma3_text")")},
          {"gpt2", groups}};
}

std::vector<double> logits_of(Decoder& decoder) {
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < 20; ++i) tokens.push_back(i * 7 % 40);
  const Input input = make_input(decoder.backend(), tokens, std::vector<std::int32_t>{20});
  return decoder.logits(decoder.features(input)).value().to_doubles();
}

/// Sets all parameters to random numbers, so that biases are not 0 and gains are not 1.
void randomize(const Parameters& parameters) {
  Rng rng(5, Purpose::test);
  for (const Parameter& parameter : parameters.all()) {
    std::vector<double> numbers(static_cast<std::size_t>(parameter.value().size()));
    for (double& number : numbers) number = 0.3 * rng.normal();
    parameter.value().assign(numbers);
  }
}

struct Fixture {
  Program longhand;

  GgufFile exported(const Decoder& model, const std::string& name,
                    const GgufContents& contents) const {
    export_gguf(model, longhand.path(name), contents);
    return GgufFile::open(longhand.path(name));
  }
  /// Exports a model of this family and this tokenizer, and returns the tokenizer that
  /// is read from the exported file. `vocabulary` is the number of tokens of the model.
  Tokenizer read_back(const Tokenizer& tokenizer, const std::string& family,
                      std::int64_t vocabulary = 400) const {
    const auto backend = make_reference_backend();
    for (auto& [name, config] : models()) {
      if (name != family) continue;
      config.vocabulary = vocabulary;
      const Decoder model(*backend, config, 1);
      const GgufFile file = exported(model, "tokens.gguf",
                                     {.type = written_gguf_type("f32"), .tokenizer = &tokenizer});
      fs::remove(longhand.path("tokens.gguf"));
      return parse_tokenizer_json(gguf_tokenizer(file), "x");
    }
    fail("no model of ", family);
  }
};

}  // namespace gguf_export_test

BOOST_FIXTURE_TEST_SUITE(gguf_export_test, Fixture)

BOOST_AUTO_TEST_CASE(every_number_of_16_bits_is_written_as_it_was_read_and_others_to_the_nearest) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float x = from_f16(half);
    if (std::isnan(x)) {
      BOOST_REQUIRE(std::isnan(from_f16(to_f16(x))));
      continue;
    }
    BOOST_REQUIRE_EQUAL(to_f16(x), half);
    if (half >= 0x7bff) continue;
    // The number halfway between two neighbouring f16 numbers is rounded to the one whose last bit
    // is 0.
    const float next = from_f16(static_cast<std::uint16_t>(half + 1)), middle = (x + next) / 2;
    BOOST_REQUIRE_EQUAL(to_f16(middle), half + (half & 1));
    BOOST_REQUIRE_EQUAL(to_f16(std::nextafter(middle, x)), half);
    BOOST_REQUIRE_EQUAL(to_f16(std::nextafter(middle, next)), half + 1);
  }
  BOOST_TEST(to_f16(65519.99f) == 0x7bff);
  BOOST_TEST(to_f16(-65520.0f) == 0xfc00);
  BOOST_TEST(to_f16(3e38f) == 0x7c00);
  BOOST_TEST(to_f16(1e-40f) == 0);
}

BOOST_AUTO_TEST_CASE(blocks_have_the_bytes_of_their_authors_and_are_read_within_their_bounds) {
  const SafetensorsFile file = open_golden("gguf_blocks");
  const std::vector<double> numbers = floats_in(file, "written.numbers");
  for (const char* name : {"f32", "f16", "bf16", "q8_0", "q4_0"}) {
    const GgufType& type = *written_gguf_type(name);
    const std::vector<std::byte> blocks = encoded(type, numbers);
    if (type.name != "F32") {
      const auto expected = file.at("written." + std::string(type.name)).bytes;
      BOOST_TEST(std::ranges::equal(blocks, expected), name);
    }
    const std::vector<double> read = decoded(type, blocks);
    check_bounds(type, numbers, read);
    BOOST_TEST((decoded(type, encoded(type, read)) == read || type.block > 1), name);
  }
  BOOST_TEST(!written_gguf_type("q6_k"));
  BOOST_TEST(!written_gguf_type("Q8_0"));
  BOOST_TEST(written_gguf_types() == "f32, f16, q4_0, q8_0, q4_k, bf16");
}

BOOST_AUTO_TEST_CASE(blocks_of_q4_k_have_the_bytes_of_llama_cpp) {
  const GgufType& type = *written_gguf_type("q4_k");
  const SafetensorsFile file = open_golden("gguf_q4_k");
  for (const std::string name : {"plain", "flat"}) {
    const std::vector<double> numbers = floats_in(file, name + ".numbers");
    const std::vector<std::byte> blocks = encoded(type, numbers);
    // If the factor of a part is 0, the integers of the part do not matter, and llama.cpp may store
    // others.
    if (name == "plain") BOOST_TEST(std::ranges::equal(blocks, file.at(name + ".blocks").bytes));
    BOOST_TEST((decoded(type, blocks) == floats_in(file, name + ".read")), name);
    check_bounds(type, numbers, decoded(type, blocks));
  }
}

BOOST_AUTO_TEST_CASE(q4_k_has_a_smaller_mean_squared_error_than_q4_0_for_random_numbers) {
  const auto mean_square = [](const char* name, std::span<const double> numbers) {
    const GgufType& type = *written_gguf_type(name);
    const std::vector<double> read = decoded(type, encoded(type, numbers));
    check_bounds(type, numbers, read);
    double sum = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) sum += std::pow(numbers[i] - read[i], 2);
    return sum / static_cast<double>(numbers.size());
  };
  Rng rng(3, Purpose::test);
  std::vector<double> normal(256 * 100), uniform(normal.size());
  for (double& number : normal) number = rng.normal();
  for (double& number : uniform) number = rng.uniform() - 0.3;
  // llama.cpp's error for four million normal numbers is 0.005083.
  BOOST_TEST(mean_square("q4_k", normal) < 1.02 * 0.005083);
  BOOST_TEST(mean_square("q4_k", normal) < 0.8 * mean_square("q4_0", normal));
  BOOST_TEST(mean_square("q4_k", uniform) < 0.8 * mean_square("q4_0", uniform));
}

BOOST_AUTO_TEST_CASE(q4_k_stores_zeros_equal_numbers_and_numbers_near_the_limits_of_f16) {
  const GgufType& type = *written_gguf_type("q4_k");
  const auto read_of = [&](double x) {
    std::vector<double> numbers(256, x);
    return decoded(type, encoded(type, numbers));
  };
  for (const double x : {0.0, 1.0, -1.0, 0.3, 4e6, -4e6}) {
    for (const double read : read_of(x)) BOOST_REQUIRE_SMALL(read - x, 1e-3 * std::abs(x) + 1e-300);
  }
  // Numbers below half of the smallest f16 number are stored as 0. Most of these differences
  // overflow or underflow in the search for a factor.
  for (const double x : {1e-8, -1e-8, 1e-30, -1e-40, 1e-45}) {
    for (const double read : read_of(x)) BOOST_REQUIRE_EQUAL(read, 0);
    std::vector<double> numbers(256, 0);
    numbers[5] = x;
    for (const double read : decoded(type, encoded(type, numbers))) BOOST_REQUIRE_EQUAL(read, 0);
  }
  // A single number, and nearly equal numbers.
  std::vector<double> numbers(256, 0);
  numbers[40] = -7;
  BOOST_TEST(decoded(type, encoded(type, numbers))[40] == -7, boost::test_tools::tolerance(1e-3));
  for (std::size_t i = 0; i < 256; ++i) numbers[i] = i % 2 == 0 ? -5 : -5 - 0x1p-21;
  check_bounds(type, numbers, decoded(type, encoded(type, numbers)));
}

BOOST_AUTO_TEST_CASE(q8_0_replaces_q4_k_for_rows_that_are_no_multiple_of_256) {
  const auto stored = [](const char* type, std::int64_t length) {
    return small_name(stored_type(*written_gguf_type(type), length));
  };
  BOOST_TEST(stored("q4_k", 512) == "q4_k");
  BOOST_TEST(stored("q4_k", 288) == "q8_0");
  BOOST_TEST(stored("q4_k", 40) == "q4_k");
  BOOST_TEST(stored("q4_0", 288) == "q4_0");
  BOOST_TEST(stored("f16", 288) == "f16");

  const auto backend = make_cpu_backend({.threads = 1, .math = Math::exact});
  Decoder model(*backend,
                llama_config_of(R"("hidden_size": 256, "intermediate_size": 288, "head_dim": 64,)"
                                R"("num_attention_heads": 4, "num_hidden_layers": 1,)"
                                R"("model_type": "llama", "tie_word_embeddings": true)"),
                1);
  randomize(model.parameters());
  const ExportedGguf all =
      export_gguf(model, longhand.path("mixed.gguf"), {.type = written_gguf_type("q4_k")});
  BOOST_TEST(all.matrices == 8);
  BOOST_TEST(all.replaced == 1);
  const GgufFile file = GgufFile::open(longhand.path("mixed.gguf"));
  BOOST_TEST(file.integer("general.file_type") == 14u);
  for (const GgufFile::Entry& entry : file.entries()) {
    const char* expected = entry.shape.rank() < 2 ? "f32" : "q4_k";
    if (entry.name == "blk.0.ffn_down.weight") expected = "q8_0";
    BOOST_TEST(small_name(*entry.type) == expected, entry.name);
  }
}

BOOST_AUTO_TEST_CASE(numbers_that_a_type_cannot_store_are_refused) {
  std::vector<double> numbers(256, 1);
  const auto refused = [&](const char* type, double x) {
    numbers[7] = x;
    return refusal([&] { encoded(*written_gguf_type(type), numbers); });
  };
  BOOST_TEST(contains(refused("f16", 7e4), "at most 65504, got 70000"));
  for (const char* type : {"q8_0", "q4_0", "q4_k"}) {
    BOOST_TEST(contains(refused(type, NAN), "expected finite numbers, got nan"));
    BOOST_TEST(contains(refused(type, -INFINITY), "expected finite numbers, got -inf"));
    for (const double x : {1e8, -1e9, 3e38, -3e38}) {
      BOOST_TEST(contains(refused(type, x), "a number that f16 can store"));
    }
  }
  for (const char* type : {"f32", "bf16"}) BOOST_TEST(refused(type, INFINITY) == "accepted");
}

BOOST_AUTO_TEST_CASE(models_are_read_back_with_the_same_logits_and_within_the_bounds_of_blocks) {
  const auto backend = make_cpu_backend({.threads = 1, .math = Math::exact});
  int count = 0;
  for (const auto& [architecture, config] : models()) {
    Decoder model(*backend, config, 1);
    randomize(model.parameters());
    for (const char* name : {"f32", "f16", "bf16", "q8_0", "q4_0", "q4_k"}) {
      BOOST_TEST_CONTEXT(architecture << ' ' << name) {
        const GgufType& wanted = *written_gguf_type(name);
        const GgufType& type = stored_type(wanted, 32);
        const std::string path = text(count++, ".gguf");
        const GgufFile file = exported(model, path, {.type = &wanted});
        BOOST_TEST(file.string("general.architecture") == architecture);
        const ForeignConfig again = parse_config(gguf_config(file).dump(), "x");
        Decoder read(*backend, again.config, 2);
        read_tensors(
            *gguf_weights(std::make_shared<const GgufFile>(GgufFile::open(longhand.path(path)))),
            again.family->tensors(read));
        if (type.name == "F32") {
          BOOST_TEST((logits_of(read) == logits_of(model)));
        }
        const auto ours = model.parameters().all(), theirs = read.parameters().all();
        BOOST_REQUIRE_EQUAL(ours.size(), theirs.size());
        for (const GgufFile::Entry& entry : file.entries()) {
          const bool matrix = entry.shape.rank() == 2 && entry.name != "position_embd.weight";
          BOOST_TEST(entry.type == (matrix ? &type : written_gguf_type("f32")), entry.name);
        }
        // The exported gpt2 model has the rows of queries, keys and values in another order,
        // because its heads are in two groups. The tensors of all other models are compared.
        for (std::size_t i = 0; i < ours.size() && architecture != "gpt2"; ++i) {
          const bool matrix = ours[i].value().shape().rank() == 2;
          // A GGUF file stores the gains of Gemma's norms as 1 + gain. The rounding error of this
          // sum can be larger than the bound for the gain.
          if (!matrix && architecture == "gemma3") continue;
          check_bounds(matrix ? type : *written_gguf_type("f32"), ours[i].value().to_doubles(),
                       theirs[i].value().to_doubles());
        }
        export_gguf(model, longhand.path("second.gguf"), {.type = &wanted});
        BOOST_TEST((contents(longhand.path("second.gguf")) == contents(longhand.path(path))));
      }
    }
  }
}

namespace {

/// The gradients of all LoRA matrices, from random gradients of the logits.
std::vector<double> lora_gradients(Decoder& decoder) {
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < 20; ++i) tokens.push_back(i * 7 % 40);
  const Input input = make_input(decoder.backend(), tokens, std::vector<std::int32_t>{20});
  Tape tape;
  Var logits;
  {
    const Recording recording(tape);
    logits = decoder.logits(decoder.features(input));
  }
  tape.backward(logits, random_tensor(decoder.backend(), logits.shape(), DType::f32, 3));
  std::vector<double> all;
  for (const Decoder::Adapter& adapter : decoder.adapters()) {
    for (const Parameter& p : {adapter.lora.a, adapter.lora.b}) {
      const std::vector<double> gradient = p.var().grad().to_doubles();
      all.insert(all.end(), gradient.begin(), gradient.end());
    }
    adapter.lora.a.var().clear_grad();
    adapter.lora.b.var().clear_grad();
  }
  return all;
}

/// ||a - b|| / ||b||
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  BOOST_REQUIRE_EQUAL(a.size(), b.size());
  double off = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    off += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(off / size);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_model_whose_matrices_stay_in_blocks_computes_as_the_decoded_model_does) {
  const auto backend = make_cpu_backend({.threads = 2, .math = Math::exact});
  int count = 0;
  for (const auto& [architecture, config] : models()) {
    Decoder model(*backend, config, 1);
    randomize(model.parameters());
    for (const char* name : {"q8_0", "q4_0"}) {
      BOOST_TEST_CONTEXT(architecture << ' ' << name) {
        const std::string path = text("blocks", count, ".gguf");
        const GgufFile file = exported(model, path, {.type = written_gguf_type(name)});
        ForeignConfig foreign = parse_config(gguf_config(file).dump(), "x");
        foreign.config.lora = {.rank = 2, .targets = parse_lora_targets("query,value,output,down")};
        if (architecture == "gpt2") foreign.config.lora.targets = parse_lora_targets("output,down");
        const auto weights =
            gguf_weights(std::make_shared<const GgufFile>(GgufFile::open(longhand.path(path))));
        Decoder decoded(*backend, foreign.config, 2);
        read_tensors(*weights, foreign.family->tensors(decoded));
        Decoder blocks(*backend, foreign.config, 2, Storage{.deferred = true});
        read_tensors_in_blocks(*weights, foreign.family->tensors(blocks), DType::f32);
        for (Decoder* const some : {&decoded, &blocks}) {
          std::vector<Parameter> lora;
          for (const Decoder::Adapter& adapter : some->adapters()) {
            adapter.lora.b.value().assign(
                random_tensor(*backend, adapter.lora.b.shape(), DType::f32, 4).to_doubles());
            lora.insert(lora.end(), {adapter.lora.a, adapter.lora.b});
          }
          train_only(some->parameters(), lora);
        }
        for (const Parameter& p : blocks.parameters().all()) {
          const bool table =
              p.name() == "positions.weight" || p.name().find("lora") < p.name().size();
          BOOST_TEST(static_cast<bool>(p.blocks()) == (p.shape().rank() == 2 && !table), p.name());
        }
        const std::vector<double> logits = logits_of(blocks);
        BOOST_TEST(distance(logits, logits_of(decoded)) < 1e-5);
        BOOST_TEST(distance(lora_gradients(blocks), lora_gradients(decoded)) < 1e-5);

        const fs::path checkpoint = longhand.path(text("blocks", count++));
        save_checkpoint(checkpoint, {}, blocks.parameters());
        BOOST_TEST(has_blocks(checkpoint));
        Decoder again(*backend, foreign.config, 3, Storage{.initial = false, .deferred = true});
        load_checkpoint(checkpoint, again.parameters());
        BOOST_TEST((logits_of(again) == logits));
        Decoder numbers(*backend, foreign.config, 3);
        load_checkpoint(checkpoint, numbers.parameters());
        BOOST_TEST((logits_of(numbers) == logits_of(decoded)));
        DecoderConfig wider = foreign.config;
        wider.inner *= 2;
        Decoder other(*backend, wider, 3, Storage{.initial = false, .deferred = true});
        const std::string refused =
            refusal([&] { load_checkpoint(checkpoint, other.parameters()); });
        BOOST_TEST((contains(refused, "numbers in blocks, got [") ||
                    contains(refused, "expected blocks of ")),
                   refused);
        blocks.parameters().decode_blocks();
        BOOST_TEST((logits_of(blocks) == logits_of(decoded)));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(models_that_the_format_cannot_represent_are_refused) {
  const auto backend = make_reference_backend();
  const auto refused = [&](const std::string& fields, const char* type = "f16") {
    const DecoderConfig config = llama_config_of(fields);
    const Decoder model(*backend, config, 1);
    const std::string message = refusal([&] {
      export_gguf(model, longhand.path("refused.gguf"), {.type = written_gguf_type(type)});
    });
    BOOST_TEST(!fs::exists(longhand.path("refused.gguf")));
    BOOST_TEST(message.find('\n') == std::string::npos);
    return message;
  };
  const std::string sizes =
      R"("hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "head_dim": 8,)"
      R"("num_attention_heads": 3,)";
  BOOST_TEST(contains(refused(sizes + R"("model_type": "llama")", "q8_0"),
                      "tensor \"token_embd.weight\": expected a row length that is a multiple of "
                      "32, the block size of "
                      "q8_0, got 24"));
  BOOST_TEST(
      contains(refused(sizes + R"("model_type": "llama")", "q4_k"),
               "tensor \"token_embd.weight\": expected a row length that is a multiple of "
               "32, the block size of q8_0, which replaces q4_k for rows that are no multiple "
               "of 256, got 24"));
  BOOST_TEST(contains(refused(sizes + R"("model_type": "llama", "hidden_act": "gelu")"),
                      "expected the activation silu for llama, got gelu"));
  BOOST_TEST(contains(refused(sizes + R"("model_type": "gpt_neox")"), "got gpt_neox"));
  BOOST_TEST(contains(refused(sizes + R"("model_type": "qwen2", "use_sliding_window": true,)"
                                      R"("sliding_window": 4, "max_window_layers": 1)"),
                      "expected heads that see all keys, got a window of 4"));
  BOOST_TEST(contains(refused(sizes + R"("model_type": "llama", "rope_scaling": {"factor": 8,)"
                                      R"("rope_type": "llama3", "low_freq_factor": 2})"),
                      "stretched as in Llama 3, got other rotary positions"));
  const std::string gemma = sizes + R"("model_type": "gemma3_text", "sliding_window": 4,)";
  BOOST_TEST(contains(refused(gemma + R"("query_pre_attn_scalar": 9)"),
                      "expected a score scale of 1/sqrt(8)"));
  BOOST_TEST(contains(refused(gemma + R"("query_pre_attn_scalar": 8, "sliding_window_pattern": 2)"),
                      "windows in all others, got another order in layer 1"));
  BOOST_TEST(contains(refused(gemma + R"("query_pre_attn_scalar": 8, "attention_bias": true)"),
                      "without biases"));
}

BOOST_AUTO_TEST_CASE(tokenizers_are_read_back_and_encode_the_same_tokens) {
  const auto same = [](const Tokenizer& ours, const Tokenizer& theirs) {
    Encoder one(ours), other(theirs);
    for (const std::string text :
         {"", "the theme of them, 1234 times\n\n  and \xc3\xa4\xe2\x82\xac!",
          "<|im_start|>user\nthe<|im_end|>", "aab ab  abc\tb"}) {
      BOOST_TEST((one.encode(text) == other.encode(text)), text);
      BOOST_TEST(ours.decode(one.encode(text)) == theirs.decode(other.encode(text)));
    }
    for (TokenId id = 0; id < ours.size(); ++id) {
      BOOST_TEST(ours.special(id) == theirs.special(id), id);
    }
  };
  for (const std::string& json : {small_tokenizer(), small_tokenizer_that_begins()}) {
    const Tokenizer tokenizer = parse_tokenizer_json(json, "x");
    const Tokenizer again = read_back(tokenizer, "llama");
    BOOST_TEST(again.size() == 400u);
    same(tokenizer, again);
    BOOST_TEST(contains(refusal([&] { read_back(tokenizer, "llama", 259); }),
                        "expected merges of tokens below 259"));
  }
  // A GGUF file with Gemma's tokenizer contains no merges. They are derived from the tokens.
  GgufText gemma;
  gemma.text("general.architecture", "gemma3");
  gemma.text("tokenizer.ggml.model", "llama");
  std::vector<std::string> tokens{"<pad>", "<bos>",  "<unk>", "  ",      "a",
                                  "b",     "\u2581", "ab",    "\u2581a", "aab"};
  std::vector<std::int32_t> types{3, 3, 3, 4, 1, 1, 1, 1, 1, 1};
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
    tokens.emplace_back(name);
    types.push_back(6);
  }
  gemma.texts("tokenizer.ggml.tokens", tokens);
  gemma.integers("tokenizer.ggml.token_type", types);
  gemma.integer("tokenizer.ggml.bos_token_id", 1);
  const std::string bytes = gemma.file();
  const Tokenizer tokenizer = parse_tokenizer_json(
      gguf_tokenizer(GgufFile::parse(std::as_bytes(std::span(bytes)), "x")), "x");
  same(tokenizer, read_back(tokenizer, "gemma3"));
}

BOOST_AUTO_TEST_CASE(an_exported_run_is_imported_with_its_tokenizer_template_and_greedy_text) {
  const std::string train =
      "train --task text --text words --task.length 16 --steps 2 --batch 2 --evaluate-samples 2 "
      "--threads 1 --norm rms --gated 1 --heads softmax:2 --width 32 --layers 1 --inner 32 "
      "--feed-forward-bias 0 --attention-bias 0 --out-bias 0 --activation silu --order sequential "
      "--quiet ";
  std::string words;
  for (int i = 0; i < 60; ++i) words += text("the theme ", i, " of them. ");
  std::ofstream(longhand.path("words")) << words;
  fs::create_directories(longhand.path("tok"));
  std::ofstream(longhand.path("tok/tokenizer.json")) << small_tokenizer_that_begins();
  const std::string jinja(ChatTemplate::jinja("chatml"));
  BOOST_TEST(ChatTemplate::recognize(jinja, "x") == "chatml");
  const auto made = longhand(train + "--tokenizer tok --task.template chatml --out run");
  BOOST_REQUIRE_MESSAGE(made.status == 0, made.err);
  const Json said = longhand.json("export run --gguf run.gguf --type q8_0 --json");
  BOOST_TEST(said["family"] == "llama");
  BOOST_TEST(said["file"] == "run.gguf");
  const GgufFile file = GgufFile::open(longhand.path("run.gguf"));
  BOOST_TEST(file.string("tokenizer.chat_template") == jinja);
  BOOST_TEST(file.integer("tokenizer.ggml.bos_token_id") == 2u);
  longhand.json("import run.gguf --out again --json");
  const std::string imported = contents(longhand.path("again/config.ini"));
  BOOST_TEST(contains(imported, "template = chatml"));
  // Exporting the imported model again must give the same bytes, because numbers of the type q8_0
  // do not change when they are rounded to it again.
  longhand.json("export again --gguf again.gguf --type q8_0 --json");
  // The rows have 32 numbers, so all matrices are stored as q8_0 instead of q4_k.
  const auto narrow = longhand("export run --gguf narrow.gguf --type q4_k");
  BOOST_TEST(contains(narrow.out,
                      "9 of 9 matrices are stored as q8_0, because the length of their rows is "
                      "not a multiple of 256, the block size of q4_k"));
  longhand.json("import again.gguf --out third --json");
  const auto generated = [&](const std::string& run) {
    return longhand.json("generate " + run +
                         " --prompt 'the theme' --tokens 8 --temperature 0 --math exact --json");
  };
  BOOST_TEST(generated("again")["log_probabilities"].dump() ==
             generated("third")["log_probabilities"].dump());
  longhand.json("export run --gguf exact.gguf --type f32 --json");
  longhand.json("import exact.gguf --out exact --json");
  BOOST_TEST(generated("exact")["tokens"].dump() == generated("run")["tokens"].dump());

  // A model whose tokens are bytes is exported with a byte-level tokenizer without merges.
  const auto bytes = longhand(train + "--out bytes");
  BOOST_REQUIRE_MESSAGE(bytes.status == 0, bytes.err);
  longhand.json("export bytes --gguf bytes.gguf --type f32 --json");
  longhand.json("import bytes.gguf --out bytes-again --json");
  BOOST_TEST(generated("bytes-again")["tokens"].dump() == generated("bytes")["tokens"].dump());
}

BOOST_AUTO_TEST_CASE(invalid_exports_are_refused_in_one_line_and_leave_no_files) {
  fs::create_directories(longhand.path("theirs"));
  const fs::path golden = fs::path(test_data) / "golden" / "gpt2_tied.safetensors";
  fs::copy_file(golden, longhand.path("theirs/model.safetensors"));
  std::ofstream(longhand.path("theirs/config.json"))
      << SafetensorsFile::open(golden).metadata().at("config");
  longhand.json("import theirs --out run --json");
  longhand.refuses(2, "export run", "expected --out DIR or --gguf FILE");
  longhand.refuses(2, "export run --out x.gguf", "--gguf FILE writes a GGUF file");
  longhand.refuses(2, "export run --gguf x.gguf --out y", "--out: cannot be combined with --gguf");
  longhand.refuses(2, "export run --gguf x.gguf --adapter",
                   "--adapter: cannot be combined with --gguf");
  longhand.refuses(2, "export run --gguf x.gguf --part-mib 3",
                   "--part-mib: cannot be combined with --gguf");
  longhand.refuses(2, "export run --out y --type f32", "--type needs --gguf FILE");
  longhand.refuses(2, "export run --gguf x.gguf --type q5_0",
                   "--type: expected f32, f16, q4_0, q8_0, q4_k, bf16, got \"q5_0\"");
  longhand.refuses(1, "export run --gguf x.gguf --type q4_0",
                   "expected a row length that is a multiple of 32");
  longhand.refuses(1, "export run --gguf theirs", "expected a new file, but this folder exists");
  longhand.refuses(1, "export run --gguf theirs/config.json", "but this file exists");
  longhand.refuses(1, "export run --gguf nowhere/x.gguf", "nowhere/x.gguf: cannot write");
  longhand.refuses(1, "export nowhere --gguf x.gguf", "expected a run folder");
  BOOST_TEST(!fs::exists(longhand.path("x.gguf")));
  if (::geteuid() != 0) {
    fs::permissions(longhand.path("theirs"), fs::perms::owner_read | fs::perms::owner_exec);
    longhand.refuses(1, "export run --gguf theirs/x.gguf", "cannot create a file in its folder");
    fs::permissions(longhand.path("theirs"), fs::perms::owner_all);
  }
  // A model whose tokens are numbers is exported without a tokenizer.
  longhand.json("export run --gguf numbers.gguf --type f32 --json");
  BOOST_TEST(GgufFile::open(longhand.path("numbers.gguf")).string("tokenizer.ggml.model") ==
             "no_vocab");
  const auto tokens = [&](const std::string& run) {
    return longhand.json("generate " + run + " --prompt '3 1 4' --tokens 5 --json")["tokens"]
        .dump();
  };
  BOOST_TEST(tokens("numbers.gguf") == tokens("run"));
}

BOOST_AUTO_TEST_SUITE_END()
