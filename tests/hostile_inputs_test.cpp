// Tests inputs that are too large to be stored as files: a long sequence of equal letters, which
// would overflow the stack of a recursive matcher, and brackets nested 60,000 deep. Smaller inputs
// of these kinds are the files tests/fuzz/corpus/*/class_*, on which ctest runs the fuzz targets.
#include <span>

#include "apps/book/markdown_page.h"
#include "apps/book/mathml.h"
#include "apps/expression.h"
#include "apps/html/markdown.h"
#include "apps/run/config.h"
#include "core/gguf_file.h"
#include "core/json.h"
#include "core/safetensors.h"
#include "core/safetensors_index.h"
#include "nn/mixer_core/mixer_list.h"
#include "nn/models/gguf.h"
#include "nn/models/hugging_face.h"
#include "nn/text/bpe_trainer.h"
#include "nn/text/chat_template.h"
#include "nn/text/encoder.h"
#include "nn/text/tokenizer_json.h"
#include "tests/gguf_writer.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(hostile_inputs_test)

using namespace longhand;

namespace {

constexpr std::size_t nested = 60'000;

std::string repeated(std::string_view part, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += part;
  return all;
}

/// `middle` enclosed in 60,000 copies of `open` and of `close`.
std::string nest(std::string_view open, std::string_view middle, std::string_view close) {
  return repeated(open, nested) + std::string(middle) + repeated(close, nested);
}

/// Checks that `action` throws an Error whose message is one short line.
void refuses(const std::function<void()>& action) {
  const std::string said = refusal(action);
  BOOST_TEST(said != "accepted");
  BOOST_TEST(said.size() < 1000u);
  BOOST_TEST(said.find('\n') == said.npos);
}

std::string same(const std::string& link) { return link; }

}  // namespace

BOOST_AUTO_TEST_CASE(a_text_of_26000_equal_characters_is_encoded_and_decoded) {
  for (const nn::WordPattern pattern : {nn::WordPattern::gpt2, nn::WordPattern::llama3,
                                        nn::WordPattern::qwen2, nn::WordPattern::digits_gpt2}) {
    const nn::TrainedBpe trained =
        nn::train_bpe("aaaa aaaa bb bb 11 11 ''", {.size = 300, .pattern = pattern});
    const nn::Tokenizer tokenizer =
        nn::parse_tokenizer_json(nn::tokenizer_json(trained).dump(), "tokenizer");
    nn::Encoder encoder(tokenizer);
    for (const std::string_view part : {"a", "1", " ", "'", "\n", "-", "\u65e5", "e\u0301", "'s"}) {
      const std::string text = repeated(part, 26'000);
      BOOST_TEST(tokenizer.decode(encoder.encode(text)) == text);
    }
  }
}

BOOST_AUTO_TEST_CASE(deep_json_is_refused_by_every_reader_of_json) {
  for (const std::string& deep : {nest("[", "1", "]"), nest(R"({"a":)", "1", "}"),
                                  repeated("[", nested), repeated(R"({"a":)", nested)}) {
    BOOST_TEST(!Json::parse(deep));
    refuses([&] { nn::parse_tokenizer_json(deep, "tokenizer"); });
    refuses([&] { nn::parse_config(deep, "config.json"); });
    refuses([&] { SafetensorsIndex::parse(deep, "index"); });
    for (const std::string& header :
         {deep, R"({"__metadata__":)" + deep + "}", R"({"a":{"shape":)" + deep + "}}"}) {
      std::string file(8, '\0');
      for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(header.size() >> 8 * i);
      file += header;
      refuses([&] { SafetensorsFile::parse(std::as_bytes(std::span(file)), "file"); });
    }
  }
}

BOOST_AUTO_TEST_CASE(a_pattern_of_60000_groups_is_refused) {
  const std::string pattern = nest("(", "a+", ")*");
  BOOST_TEST(!nn::known_pattern(pattern));
  refuses([&] {
    nn::parse_tokenizer_json(R"({"pre_tokenizer":{"type":"Split","pattern":{"Regex":")" + pattern +
                                 R"("},"behavior":"Isolated","invert":false},"model":{}})",
                             "tokenizer");
  });
}

BOOST_AUTO_TEST_CASE(a_chat_template_of_60000_blocks_is_refused) {
  refuses([] { nn::ChatTemplate::recognize(nest("{% if a %}", "b", "{% endif %}"), "template"); });
  refuses([] { nn::ChatTemplate::recognize("{{ " + nest("(", "1", ")") + " }}", "template"); });
}

BOOST_AUTO_TEST_CASE(formulas_nested_60000_deep_are_refused) {
  refuses([] { app::Expression(nest("(", "x", ")")); });
  refuses([] { app::Expression(repeated("-", nested) + "x"); });
  for (const std::string& latex :
       {nest("{", "x", "}"), repeated("\\hat", nested) + " x", repeated("\\sqrt", nested) + " x",
        repeated("\\frac", nested), nest("\\left(", "x", "\\right)"), repeated("x^", nested),
        repeated("\\begin{cases}", nested), nest("\\mathrel{", "x", "}")}) {
    refuses([&] { app::book::mathml(latex, false); });
  }
}

BOOST_AUTO_TEST_CASE(pages_nested_60000_deep_are_refused_or_read) {
  for (const std::string& page :
       {nest("[", "a", "](b)"), repeated("> ", nested), repeated("- ", nested)}) {
    const std::string said = refusal([&] { app::book::markdown_page(page, same); });
    BOOST_TEST(said.size() < 1000u);
    BOOST_TEST(said.find('\n') == said.npos);
  }
  const auto file = [](std::size_t) { return std::string(); };
  const std::string text =
      app::html::markdown(nest("<b>", "a", "</b>"), {.picture = file, .listing = file}).text;
  BOOST_TEST(contains(text, "a"));
}

BOOST_AUTO_TEST_CASE(options_nested_60000_deep_are_refused) {
  refuses([] { nn::parse_layers("softmax:1" + nest("{", "a=1", "}"), 64); });
  refuses([] { nn::parse_layers(repeated("softmax:1{", nested), 64); });
  refuses([] { app::Config::parse("[model]\nheads = softmax:1" + repeated("{", nested), "ini"); });
}

BOOST_AUTO_TEST_CASE(an_empty_heading_and_a_cell_without_a_row_do_not_end_the_program) {
  for (const char* marks : {"#", "##", "######", "#########"}) {
    BOOST_TEST(contains(app::book::markdown_page(marks, same).html, "<h"));
  }
  const auto file = [](std::size_t) { return std::string(); };
  refuses([&] { app::html::markdown("<td>a</td>", {.picture = file, .listing = file}); });
  refuses([&] {
    app::html::markdown("<table><tr>" + repeated("<td colspan=\"1000\"></td>", 2),
                        {.picture = file, .listing = file});
  });
}

BOOST_AUTO_TEST_CASE(an_arrow_does_not_close_a_bracket) {
  BOOST_TEST(contains(app::book::mathml("\\left( a \\rightarrow b \\right)", false), "→"));
}

BOOST_AUTO_TEST_CASE(models_of_too_many_layers_are_refused_in_every_family) {
  for (const char* config :
       {R"({"model_type":"llama","vocab_size":8,"hidden_size":4,"intermediate_size":4,
            "num_hidden_layers":1001,"num_attention_heads":1,"max_position_embeddings":8})",
        R"({"model_type":"gpt_neox","vocab_size":8,"hidden_size":4,"intermediate_size":4,
            "num_hidden_layers":1001,"num_attention_heads":1})",
        R"({"model_type":"gpt2","n_layer":1001})"}) {
    expect_refusal([&] { nn::parse_config(config, "config.json"); }, "layer");
    expect_refusal([&] { nn::parse_config(config, "config.json"); },
                   "expected at most 1000, got 1001");
  }
}

BOOST_AUTO_TEST_CASE(a_long_token_that_is_split_everywhere_is_refused) {
  GgufText writer;
  writer.text("general.architecture", "gemma3");
  writer.text("tokenizer.ggml.model", "llama");
  writer.texts("tokenizer.ggml.tokens", {"a", std::string(26'000, 'a')});
  writer.integers("tokenizer.ggml.token_type", {1, 1});
  const std::string bytes = writer.file();
  const GgufFile file = GgufFile::parse(std::as_bytes(std::span(bytes)), "file");
  expect_refusal([&] { nn::gguf_tokenizer(file); },
                 "file: token 1: expected at most 1024 bytes, got 26000");
}

BOOST_AUTO_TEST_CASE(messages_that_are_not_utf8_are_refused) {
  for (const char* name : {"chatml", "llama3", "gemma"}) {
    const nn::ChatTemplate known(name);
    for (const char* text : {"\xf0", "a\xe2\x82", "\x80", "\xff "}) {
      refuses([&] { (void)known.answer(text); });
      refuses([&] {
        (void)known.prompt(std::vector<nn::ChatMessage>{{nn::ChatMessage::Role::user, text}});
      });
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
