#include "tasks/framing.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "core/quote.h"
#include "core/text_file.h"
#include "tasks/conversation.h"
#include "tasks/escapes.h"
#include "tasks/text_vocabulary.h"

namespace longhand::tasks {
namespace {

// Maximum size of a tokenizer_config.json in bytes.
constexpr std::size_t largest_config = std::size_t{64} << 20;

/// The tokens of a tokenizer. encode() treats a text as the prompt of a sample. It returns the
/// tokens before the prompt (such as an instruction), then those of the prompt, then those between
/// prompt and answer.
class FramedVocabulary final : public Vocabulary {
 public:
  FramedVocabulary(const TokenizerVocabulary& tokens, const Framing& framing)
      : tokens_(tokens), framing_(framing) {}

  std::int32_t size() const override { return tokens_.size(); }
  std::string text(std::int32_t token) const override { return tokens_.text(token); }
  std::optional<std::int32_t> find(std::string_view text) const override {
    return tokens_.find(text);
  }
  using Vocabulary::encode;
  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> all(framing_.before().begin(), framing_.before().end());
    const std::vector<std::int32_t> prompt = framing_.tokens_of(text);
    all.insert(all.end(), prompt.begin(), prompt.end());
    all.insert(all.end(), framing_.between().begin(), framing_.between().end());
    return all;
  }
  std::vector<std::int32_t> encode_part(std::string_view text) const override {
    return framing_.tokens_of(text);
  }
  std::vector<std::int32_t> beginning() const override {
    return {framing_.before().begin(), framing_.before().end()};
  }
  std::string decode(std::span<const std::int32_t> tokens) const override {
    return tokens_.decode(tokens);
  }

 private:
  TokenizerVocabulary tokens_;
  const Framing& framing_;
};

/// The token that tokenizer_config.json assigns to the key `name`, such as eos_token. No value if
/// the file or the key does not exist.
std::optional<std::int32_t> named_token(const std::filesystem::path& folder, std::string_view name,
                                        const Vocabulary& tokens) {
  const std::filesystem::path file = folder / "tokenizer_config.json";
  if (!std::filesystem::exists(file)) return std::nullopt;
  const std::optional<Json> json = Json::parse(read_text(file, largest_config));
  LONGHAND_CHECK(json && json->is_object(), file.string(), ": expected a JSON object");
  const Json* field = json->find(name);
  if (field && field->is_object()) field = field->find("content");
  return field && field->is_string() ? tokens.find(field->string()) : std::nullopt;
}

}  // namespace

std::vector<TaskOption> Framing::options() {
  return {
      {"tokenizer", "characters",
       "tokenizer: characters (one token per character), a tokenizer.json file, or a folder that "
       "contains one",
       "tokenizer"},
      {"vocabulary", "0",
       "with a tokenizer file: vocabulary size of the model; 0: the tokenizer's vocabulary size"},
      {"template", "none",
       "chat template (needs a tokenizer file): none, auto (the tokenizer's own), or one of " +
           nn::ChatTemplate::names()},
      {"date", "26 Jul 2024", "date that the llama3.2 template inserts"},
      {"instruction", "",
       "with a tokenizer file: text that precedes every prompt; auto: the task's default"},
      {"examples", "",
       "with a tokenizer file: example lines that precede every prompt, separated by \\n; auto: "
       "the task's two default examples"}};
}

Framing::Framing(const OptionValues& options, const Own& own) {
  tokens_.fill(-1);
  if (names_tokenizer(options.text("tokenizer"))) {
    frame_for(options, own);
    return;
  }
  for (const TaskOption& option : Framing::options()) {
    const std::string& value = options.text(option.name);
    LONGHAND_CHECK(value == option.default_value || option.name == "date", "task ", options.task(),
                   ": option ", option.name, ": the value ", quote(value),
                   " needs a tokenizer (--tokenizer), but the tokens are the task's characters");
  }
  std::string all(own.characters);
  for (std::size_t i = 0; i < all.size(); ++i) add(all[i], static_cast<std::int32_t>(i));
  if (own.ended) {
    after_ = {static_cast<std::int32_t>(all.size())};
    all += '\n';
  }
  vocabulary_ = std::make_unique<WordVocabulary>(WordVocabulary::of_characters(all));
}

void Framing::frame_for(const OptionValues& options, const Own& own) {
  const std::string& path = options.text("tokenizer");
  const std::string place = "task " + options.task() + ": ";
  TokenizerVocabulary tokens(shared_tokenizer(path), options.integer("vocabulary", 0, 1 << 24));

  const auto chosen = [&](const char* name, std::string_view of_task) {
    return options.text(name) == "auto" ? std::string(of_task) : unescaped(options, name);
  };
  std::string examples = chosen("examples", own.examples);
  LONGHAND_CHECK(std::ranges::all_of(examples, [](unsigned char c) { return c < 128; }), place,
                 "option examples: expected ASCII, got ", quote(examples));
  if (!examples.empty()) examples += '\n';
  for (const char c : std::string(own.characters) + examples) {
    if (tokens_[static_cast<unsigned char>(c)] >= 0) continue;
    const auto one = tokens.encode_part(std::string(1, c));
    LONGHAND_CHECK(one.size() == 1, place, "option tokenizer: ", path,
                   ": expected one token for the character ", quote(std::string(1, c)), ", got ",
                   one.size(), " tokens");
    add(c, one.front());
  }

  const std::string chat = chat_template_name(options);
  if (chat == "none") {
    before_ = tokens.beginning();
    if (before_.empty()) {
      const auto first = named_token(path, "bos_token", tokens);
      LONGHAND_CHECK(first, place, "option template: ", path,
                     " has no token that begins a text, so a ", "chat template is needed");
      before_ = {*first};
    }
    const auto last = named_token(path, "eos_token", tokens);
    LONGHAND_CHECK(last || !own.ended, place, "option template: ", path,
                   " has no token that ends a text, so a chat template is needed");
    if (last) after_ = {*last};
  } else {
    const nn::ChatTemplate written(chat, options.text("date"));
    LONGHAND_CHECK(tokens.encode_part(written.end_of_turn()).size() == 1, place,
                   "option template: expected a tokenizer that encodes ",
                   quote(written.end_of_turn()), " as one token, got ", path);
    const nn::ChatTemplate::Frame frame = written.frame();
    before_ = tokens.encode(frame.before);
    between_ = tokens.encode_part(frame.between);
    after_ = tokens.encode_part(frame.after);
  }
  if (!own.ended) after_.clear();
  append(before_, tokens.encode_part(chosen("instruction", own.instruction)));
  append(before_, tokens_of(examples));
  vocabulary_ = std::make_unique<FramedVocabulary>(tokens, *this);
}

void Framing::add(char character, std::int32_t token) {
  tokens_[static_cast<unsigned char>(character)] = token;
  LONGHAND_CHECK(characters_.emplace(token, character).second,
                 "expected a separate token for the character ", quote(std::string(1, character)),
                 ", got the token of the character ", quote(std::string(1, characters_.at(token))));
}

std::vector<std::int32_t> Framing::tokens_of(std::string_view characters) const {
  std::vector<std::int32_t> tokens;
  for (const char c : characters) {
    tokens.push_back(tokens_[static_cast<unsigned char>(c)]);
    LONGHAND_CHECK(tokens.back() >= 0, "text: no token of the vocabulary matches at character ",
                   tokens.size(), ": ", quote(characters.substr(tokens.size() - 1, 12)));
  }
  return tokens;
}

std::string Framing::characters_of(std::span<const std::int32_t> tokens) const {
  std::string characters;
  for (const std::int32_t token : tokens) characters += characters_.at(token);
  return characters;
}

}  // namespace longhand::tasks
