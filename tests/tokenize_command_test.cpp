#include <functional>
#include "tests/check.h"

#include "core/json.h"
#include "tests/golden.h"
#include "tests/program.h"
#include "tests/refusal.h"

namespace tokenize_command_test {

using namespace longhand;

/// The program, with the small tokenizers of golden/tokenizer_ids.json in its folder.
struct Files : Program {
  Json golden = golden_json("tokenizer_ids");

  Files() {
    for (const auto& [name, kind] : golden["tokenizers"].members()) {
      write(name + ".json", kind["tokenizer"].dump());
    }
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  /// Expects that a golden tokenizer is refused after `change` altered it.
  void refuses_changed(const std::string& kind, const std::string& message,
                       const std::function<void(Json&)>& change) const {
    Json whole = golden["tokenizers"][kind]["tokenizer"];
    change(whole);
    write("other.json", whole.dump());
    refuses(1, "tokenize --tokenizer other.json -- x", message);
  }
};

}  // namespace tokenize_command_test

BOOST_FIXTURE_TEST_SUITE(tokenize_command_test, Files)

BOOST_AUTO_TEST_CASE(a_file_is_encoded_and_decoded) {
  const std::string& text = golden["training_text"].string();
  write("text", text);
  for (const auto& [name, kind] : golden["tokenizers"].members()) {
    BOOST_TEST_CONTEXT(name) {
      const auto ids = (*this)("tokenize text --ids --bare --tokenizer " + name + ".json");
      BOOST_TEST(ids.status == 0);
      write("ids", ids.out);
      BOOST_TEST((*this)("tokenize ids --decode --tokenizer " + name + ".json").out == text);
      const Json all = json("tokenize text --json --offsets --bare --tokenizer " + name + ".json");
      BOOST_TEST(all["ids"].size() == all["offsets"].size());
      BOOST_TEST((*this)("tokenize text --count --bare --tokenizer " + name + ".json").out ==
                 std::to_string(all["ids"].size()) + "\n");
      BOOST_TEST((*this)("tokenize - --ids --bare --tokenizer " + name + ".json <text").out ==
                 ids.out);
    }
  }
}

BOOST_AUTO_TEST_CASE(text_on_the_command_line_is_shown_token_by_token) {
  const auto table = (*this)("tokenize --tokenizer llama3.json --offsets -- a1 'b  c'");
  BOOST_TEST(table.status == 0);
  BOOST_TEST(table.out.starts_with("1\t0\t0\t\"<|start|>\"\n"));
  BOOST_TEST(contains(table.out, "\t0\t1\t\"a\"\n"));
  // In the text "a1 b  c", the token " c" has the bytes 5 to 7, so no token has the bytes 6 to 7.
  BOOST_TEST(table.out.find("\t6\t7\t") == std::string::npos);
  const auto bare = (*this)("tokenize --tokenizer llama3.json --bare -- --ids");
  BOOST_TEST(bare.out.find("start") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(one_long_word_takes_little_memory) {
  write("short", "a");
  for (const auto& [tokenizer, unit] :
       {std::pair("gpt2", "a"), {"qwen2", "e\u0301"}, {"gemma", "\u2581"}}) {
    std::string word;
    while (word.size() < 20'000'000) word += unit;
    write("word", word);
    const std::string rest = std::string(" --count --tokenizer ") + tokenizer + ".json";
    const std::int64_t least = peak_mib("tokenize short" + rest);
    // The bound of 100 MiB leaves room for the text of the file and its normalized text. Merging
    // the whole word at once would need 900 MiB or more.
    BOOST_TEST(peak_mib("tokenize word" + rest) - least < 100, tokenizer);
  }
}

BOOST_AUTO_TEST_CASE(a_folder_with_a_vocabulary_and_merges_is_read_as_gpt2) {
  const Json& model = golden["tokenizers"]["gpt2"]["tokenizer"]["model"];
  std::string merges = "#version: 0.2\n";
  for (const Json& merge : model["merges"]) {
    merges += merge[0].string() + " " + merge[1].string() + "\n";
  }
  std::filesystem::create_directory(path("old"));
  write("old/vocab.json", model["vocab"].dump());
  write("old/merges.txt", merges);
  write("text", golden["training_text"].string());
  BOOST_TEST((*this)("tokenize text --ids --tokenizer old").out ==
             (*this)("tokenize text --ids --tokenizer gpt2.json").out);
}

BOOST_AUTO_TEST_CASE(a_tokenizer_is_trained_and_used) {
  write("text", golden["training_text"].string());
  const std::string train =
      "tokenize train text --size 500 --pattern llama3 --special '<|end|>' --special '<|start|>'";
  const Json told = json(train + " --out new.json --json");
  BOOST_TEST(told["tokens"].integer() ==
             static_cast<std::int64_t>(
                 golden["tokenizers"]["trained"]["tokenizer"]["model"]["vocab"].members().size()));
  BOOST_TEST(contents(path("new.json")) == contents(path("trained.json")));
}

BOOST_AUTO_TEST_CASE(wrong_usage_and_broken_input_are_refused_in_one_line) {
  write("broken", "ab\xff");
  refuses(1, "tokenize broken --tokenizer gpt2.json", "broken: broken UTF-8 at byte 2");
  refuses(1, "tokenize train broken --out x.json", "broken: broken UTF-8 at byte 2");
  BOOST_TEST((*this)("tokenize broken --lossy --ids --tokenizer gpt2.json").status == 0);
  refuses(2, "tokenize", "--tokenizer is missing");
  refuses(2, "tokenize --tokenizer gpt2.json", "expected one FILE");
  refuses(2, "tokenize broken --tokenizer gpt2.json -- text", "expected either FILE or -- TEXT");
  refuses(2, "tokenize broken --ids --json --tokenizer gpt2.json", "expected at most one of --ids");
  refuses(1, "tokenize nowhere --tokenizer gpt2.json", "nowhere");
  refuses(1, "tokenize --decode --tokenizer gpt2.json -- 1 x", "expected token ids at byte 2");
  refuses(1, "tokenize --decode --tokenizer gpt2.json -- 999999", "got 999999");
  refuses(2, "tokenize train broken --out x.json --pattern perl", "--pattern: expected gpt2");
  refuses(1, "tokenize broken --tokenizer .", "expected tokenizer.json, or vocab.json");
}

BOOST_AUTO_TEST_CASE(unsupported_features_of_a_tokenizer_are_refused_by_name) {
  refuses_changed("gpt2", "model: expected the type BPE",
                  [](Json& t) { t["model"]["type"] = "Unigram"; });
  refuses_changed("gpt2", "pre_tokenizer: expected", [](Json& t) {
    t["pre_tokenizer"] = {{"type", "Whitespace"}};
  });
  refuses_changed("gpt2", "add_prefix_space",
                  [](Json& t) { t["pre_tokenizer"]["add_prefix_space"] = true; });
  refuses_changed("qwen2", "pre_tokenizer: expected", [](Json& t) {
    t["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {{"Regex", "\\s+"}};
  });
  refuses_changed("gpt2", "normalizer: expected", [](Json& t) {
    t["normalizer"] = {{"type", "Lowercase"}};
  });
  refuses_changed("gpt2", "decoder: expected", [](Json& t) {
    t["decoder"] = {{"type", "WordPiece"}};
  });
  refuses_changed("gpt2", "post_processor", [](Json& t) {
    t["post_processor"] = {{"type", "BertProcessing"}};
  });
  refuses_changed("gpt2", "lstrip is not supported",
                  [](Json& t) { t["added_tokens"][0]["lstrip"] = true; });
  refuses_changed("gpt2", "dropout: expected no value",
                  [](Json& t) { t["model"]["dropout"] = 0.1; });
  refuses_changed("gpt2", "byte_fallback", [](Json& t) { t["model"]["byte_fallback"] = true; });
  refuses_changed("gemma", "byte_fallback", [](Json& t) { t["model"]["byte_fallback"] = false; });
  refuses_changed("gemma", "normalizer: expected the normalizer of Gemma",
                  [](Json& t) { t["normalizer"] = nullptr; });
  refuses_changed("gpt2", "truncation: expected none", [](Json& t) {
    t["truncation"] = {{"direction", "Right"}, {"max_length", 512}};
  });
}

BOOST_AUTO_TEST_CASE(contradictory_vocabularies_and_merges_are_refused) {
  refuses_changed("gpt2", "has the id 5", [](Json& t) { t["added_tokens"][0]["id"] = 5; });
  refuses_changed("gpt2", "two tokens have the id 5",
                  [](Json& t) { t["model"]["vocab"]["zzz"] = 5; });
  refuses_changed("gpt2", "expected token ids below ",
                  [](Json& t) { t["model"]["vocab"]["zzz"] = 1 << 29; });
  refuses_changed("gpt2", "expected an id from 0",
                  [](Json& t) { t["model"]["vocab"]["zzz"] = -1; });
  refuses_changed("gpt2", "is not a token", [](Json& t) {
    t["model"]["merges"].push_back(Json::Array{"q", "qq"});
  });
  refuses_changed("gpt2", "expected two tokens",
                  [](Json& t) { t["model"]["merges"].push_back("q"); });
  refuses_changed("gpt2", " followed by ", [](Json& t) {
    t["model"]["merges"].push_back(Json::Array{"q", "z"});
  });
  refuses_changed("smollm2", "lacks the byte", [](Json& t) { t["model"]["unk_token"] = "a"; });
  write("other.json", "{\"model\": {}");
  refuses(1, "tokenize --tokenizer other.json -- x", "other.json: expected ',' or '}'");
}

BOOST_AUTO_TEST_CASE(padding_must_be_to_the_longest_text_of_a_batch) {
  const Json batch{{"strategy", "BatchLongest"}, {"pad_to_multiple_of", nullptr}, {"pad_id", 0}};
  Json padded = golden["tokenizers"]["gpt2"]["tokenizer"];
  padded["padding"] = batch;
  write("padded.json", padded.dump());
  BOOST_TEST(json("tokenize --tokenizer padded.json --json -- x")["ids"].size() == 1u);
  const auto refuses_padding = [&](const char* name, const Json& value) {
    refuses_changed("gpt2", "padding: expected none or BatchLongest", [&](Json& t) {
      t["padding"] = batch;
      t["padding"][name] = value;
    });
  };
  refuses_padding("strategy", Json{{"Fixed", 512}});
  refuses_padding("pad_to_multiple_of", Json(8));
}

BOOST_AUTO_TEST_SUITE_END()
