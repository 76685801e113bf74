#include "nn/text/chat_template.h"

#include <set>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/json.h"
#include "nn/text/encoder.h"
#include "nn/text/tokenizer_json.h"
#include "tests/check.h"
#include "tests/contents.h"
#include "tests/golden.h"
#include "tests/paths.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

BOOST_AUTO_TEST_SUITE(chat_template_test)

using namespace longhand;
using namespace longhand::nn;

namespace {

using Role = ChatMessage::Role;

/// Conversations as written by Hugging Face's transformers, produced by golden/chat_templates.py.
const Json& golden() {
  static const Json whole = golden_json("chat_templates");
  return whole;
}

std::vector<ChatMessage> conversation(const Json& turns) {
  std::vector<ChatMessage> messages;
  for (const Json& turn : turns) {
    const std::string& role = turn["role"].string();
    messages.push_back({role == "system" ? Role::system
                        : role == "user" ? Role::user
                                         : Role::assistant,
                        turn["content"].string()});
  }
  return messages;
}

const std::vector<ChatMessage> hello{{Role::user, "Hello"}};

}  // namespace

BOOST_AUTO_TEST_CASE(conversations_are_written_as_transformers_write_them) {
  const Tokenizer tokenizer = parse_tokenizer_json(golden()["tokenizer"].dump(), "golden");
  std::set<std::string> names;
  std::size_t compared = 0;
  for (const Json& one : golden()["templates"]) {
    const ChatTemplate chat(one["template"].string(), golden()["date"].string());
    names.insert(one["template"].string());
    for (std::size_t i = 0; i < one["ids"].size(); ++i) {
      if (one["ids"][i].is_null()) continue;
      const std::string text = chat.prompt(conversation(golden()["conversations"][i]));
      const auto ids = Encoder(tokenizer).encode(text, {.around = false});
      std::vector<TokenId> wanted;
      for (const Json& id : one["ids"][i]) wanted.push_back(static_cast<TokenId>(id.integer()));
      BOOST_TEST(ids == wanted, one["template"].string() << ", conversation " << i << ": " << text);
      ++compared;
    }
  }
  BOOST_TEST(names.size() == 6u);
  BOOST_TEST(compared == 38u);
}

BOOST_AUTO_TEST_CASE(an_answer_and_its_end_continue_the_prompt) {
  for (const char* name : {"smollm2", "llama3.2", "gemma"}) {
    const ChatTemplate chat(name);
    std::vector<ChatMessage> all = hello;
    const std::string asked = chat.prompt(all);
    all.push_back({Role::assistant, " Hi! "});
    BOOST_TEST(chat.prompt(all).starts_with(asked + chat.answer(" Hi! ") +
                                            std::string(chat.end_of_turn())));
  }
}

BOOST_AUTO_TEST_CASE(published_templates_are_recognised_by_their_text) {
  for (const Json& one : golden()["templates"]) {
    if (one["jinja"].is_null()) continue;
    const std::string& jinja = one["jinja"].string();
    BOOST_TEST(ChatTemplate::recognize(jinja, "x") == one["template"].string());
    BOOST_TEST(ChatTemplate::recognize(" " + jinja + "\n", "x") == one["template"].string());
    BOOST_CHECK_THROW(ChatTemplate::recognize(jinja + "x", "x"), Error);
    // The template of Qwen 2.5 Coder has double braces around the example of a tool call. It must
    // be recognized, too.
    if (const auto call = jinja.find("{\\\"name"); call != std::string::npos) {
      std::string coder = jinja;
      coder.insert(jinja.find("}\\n</tool_call><", call), 1, '}').insert(call, 1, '{');
      BOOST_TEST(ChatTemplate::recognize(coder, "x") == "qwen2");
    }
  }
  BOOST_TEST(refusal([] { ChatTemplate::recognize("{{ a }}", "here"); }).starts_with("here: "));
  BOOST_CHECK_THROW(ChatTemplate("alpaca"), Error);
}

BOOST_AUTO_TEST_CASE(a_tokenizers_folder_may_name_its_template) {
  const TemporaryFolder folder;
  const auto config = folder / "tokenizer_config.json";
  BOOST_TEST(ChatTemplate::jinja_of(folder.path()).empty());
  write_atomically(config, R"({"bos_token": "x"})");
  BOOST_TEST(ChatTemplate::jinja_of(folder.path()).empty());
  write_atomically(config, R"({"chat_template": "a"})");
  BOOST_TEST(ChatTemplate::jinja_of(folder.path()) == "a");
  write_atomically(config, R"({"chat_template": [{"name": "rag", "template": "b"},
                                                 {"name": "default", "template": "c"}]})");
  BOOST_TEST(ChatTemplate::jinja_of(folder.path()) == "c");
  for (const char* wrong : {R"({"chat_template": [{"name": "rag", "template": "b"}]})",
                            R"({"chat_template": 3})", R"([])", R"({)"}) {
    write_atomically(config, wrong);
    BOOST_CHECK_THROW(ChatTemplate::jinja_of(folder.path()), Error);
  }
  write_atomically(folder / "chat_template.jinja", "d");
  BOOST_TEST(ChatTemplate::jinja_of(folder.path()) == "d");
}

BOOST_AUTO_TEST_SUITE_END()
