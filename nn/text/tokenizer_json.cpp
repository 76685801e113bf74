#include "nn/text/tokenizer_json.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/error.h"
#include "core/json_reader.h"
#include "core/mapped_file.h"
#include "core/quote.h"
#include "nn/text/byte_map.h"
#include "nn/text/merge_builder.h"

namespace longhand::nn {
namespace {

std::string_view chars(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

/// The members of a JSON object by name. The values are kept as unparsed text, so that they can be
/// parsed in any order.
using Sections = std::map<std::string, std::string_view, std::less<>>;

/// The member `name` of `object`. Null if the member is missing or `object` is not an object.
const Json& member(const Json& object, std::string_view name) {
  static const Json null;
  const Json* const found = object.is_object() ? object.find(name) : nullptr;
  return found ? *found : null;
}

bool is(const Json& object, std::string_view name, const Json& value) {
  return member(object, name) == value;
}

bool is_true(const Json& object, std::string_view name) { return is(object, name, true); }

/// The steps of a stage of the tokenizer, such as the normalizer. If `value` is null, the stage has
/// no steps. If `value` has the type "Sequence", its member named `list` contains the steps.
/// Otherwise `value` itself is the only step.
std::vector<Json> steps(const Json& value, std::string_view list) {
  if (value.is_null()) return {};
  if (!is(value, "type", "Sequence") || !member(value, list).is_array()) return {value};
  return member(value, list).elements();
}

[[noreturn]] void refuse(const std::string& file, std::string_view what, const Json& value,
                         std::string_view known) {
  fail(file, ": ", what, ": expected ", known, ", got ", quote(value.dump()));
}

class Reader {
 public:
  Reader(std::string_view text, std::string file) : file_(std::move(file)), whole_(text, file_) {
    read_sections();
  }

  Tokenizer read() {
    LONGHAND_CHECK(member_of(model_, "type").is_null() || member_of(model_, "type") == "BPE", file_,
                   ": model: expected the type BPE, got ", quote(member_of(model_, "type").dump()));
    require_whole_texts();
    read_pattern();
    read_normalizer();
    read_decoder();
    const std::vector<Added> added = read_added();
    read_vocabulary(added);
    read_added_tokens(added);
    read_merges();
    read_post_processor();
    read_model_flags();
    return in_file("", [&] { return Tokenizer(std::move(parts_)); });
  }

 private:
  struct Added {
    TokenId id;
    std::string content;
    bool special, normalized;
  };

  /// Returns body(). If body() throws an Error, puts the file's name and `where` before the
  /// message.
  template <class Body>
  std::invoke_result_t<Body> in_file(std::string_view where, Body body) const {
    try {
      return body();
    } catch (const Error& error) {
      fail(file_, ": ", where, error.what());
    }
  }

  /// Finds the members of the top level and of the object "model" in one pass over the text.
  void read_sections() {
    JsonReader reader = whole_;
    read_sections(reader, all_, [&](std::string_view name) {
      if (name != "model") return reader.skip();
      read_sections(reader, model_, [&](std::string_view) { return reader.skip(); });
      return std::string_view();
    });
    reader.finish();
    LONGHAND_CHECK(all_.contains("model"), file_, ": not a tokenizer.json: it has no \"model\"");
  }
  template <class Read>
  void read_sections(JsonReader& reader, Sections& found, Read read) const {
    for (reader.open_object(); reader.next_member();) {
      std::string name(reader.name());
      LONGHAND_CHECK(!found.contains(name), file_, ": ", quote(name), " is given twice");
      const std::string_view value = read(name);
      found.emplace(std::move(name), value);
    }
  }
  /// The parsed value of a member; null if it is missing.
  Json member_of(const Sections& all, std::string_view name) const {
    const auto found = all.find(name);
    return found == all.end() ? Json() : whole_.at(found->second).value();
  }
  bool spaces() const { return parts_.pattern == WordPattern::spaces; }

  /// Throws an Error if the file enables truncation, or padding that could change a text
  /// that is encoded alone. The strategy BatchLongest without pad_to_multiple_of is allowed,
  /// because it pads only the texts of a batch.
  void require_whole_texts() const {
    const Json truncation = member_of(all_, "truncation"), padding = member_of(all_, "padding");
    if (!truncation.is_null()) refuse(file_, "truncation", truncation, "none");
    const bool changes_one_text =
        !padding.is_null() && !(is(padding, "strategy", "BatchLongest") &&
                                member(padding, "pad_to_multiple_of").is_null());
    if (changes_one_text) refuse(file_, "padding", padding, "none or BatchLongest");
  }

  /// Determines the word pattern from the pre-tokenizer.
  void read_pattern() {
    const Json whole = member_of(all_, "pre_tokenizer");
    const std::vector<Json> list = steps(whole, "pretokenizers");
    const auto byte_level = [](const Json& step, bool own_pattern) {
      return is(step, "type", "ByteLevel") && !is_true(step, "add_prefix_space") &&
             (is(step, "use_regex", false) ? !own_pattern : own_pattern);
    };
    if (list.size() == 1 && byte_level(list[0], true)) {
      parts_.pattern = WordPattern::gpt2;
      return;
    }
    if (list.size() == 2 && is(list[0], "type", "Digits") &&
        is_true(list[0], "individual_digits") && byte_level(list[1], true)) {
      parts_.pattern = WordPattern::digits_gpt2;
      return;
    }
    if (list.size() == 2 && is(list[0], "type", "Split") && is(list[0], "behavior", "Isolated") &&
        !is_true(list[0], "invert") && byte_level(list[1], false)) {
      const Json& expression = member(member(list[0], "pattern"), "Regex");
      const auto known = expression.is_string() ? known_pattern(expression.string()) : std::nullopt;
      if (known) {
        parts_.pattern = *known;
        return;
      }
    }
    // Gemma's Split step at spaces has no effect, because the normalizer runs first and replaces
    // all spaces.
    if (list.size() == 1 && is(list[0], "type", "Split") &&
        is(member(list[0], "pattern"), "String", " ")) {
      parts_.pattern = WordPattern::spaces;
      return;
    }
    refuse(file_, "pre_tokenizer", whole,
           "the pre_tokenizer of GPT-2, Llama 3, Qwen 2, SmolLM2 or Gemma (without "
           "add_prefix_space)");
  }

  void read_normalizer() {
    const Json whole = member_of(all_, "normalizer");
    const std::vector<Json> list = steps(whole, "normalizers");
    if (spaces()) {
      const bool known = list.size() == 1 && is(list[0], "type", "Replace") &&
                         is(member(list[0], "pattern"), "String", " ") &&
                         is(list[0], "content", space_mark);
      if (!known)
        refuse(file_, "normalizer", whole, "the normalizer of Gemma (replaces a space by U+2581)");
      return;
    }
    parts_.nfc = list.size() == 1 && is(list[0], "type", "NFC");
    if (!list.empty() && !parts_.nfc) refuse(file_, "normalizer", whole, "none or NFC");
  }

  void read_decoder() const {
    const Json whole = member_of(all_, "decoder");
    const std::vector<Json> list = steps(whole, "decoders");
    if (!spaces()) {
      if (list.size() == 1 && is(list[0], "type", "ByteLevel")) return;
      refuse(file_, "decoder", whole, "ByteLevel");
    }
    const bool known = list.size() == 3 && is(list[0], "type", "Replace") &&
                       is(member(list[0], "pattern"), "String", space_mark) &&
                       is(list[0], "content", " ") && is(list[1], "type", "ByteFallback") &&
                       is(list[2], "type", "Fuse");
    if (!known)
      refuse(file_, "decoder", whole, "the decoder of Gemma (Replace, ByteFallback, Fuse)");
  }

  /// If there are n tokens, every id must be less than 2 n + allowed_gaps. Without such a limit, a
  /// small file with one large id could require huge tables.
  static constexpr std::int64_t allowed_gaps = 1 << 12;

  TokenId checked_id(std::int64_t id, std::string_view content) const {
    LONGHAND_CHECK(id >= 0 && id < (std::int64_t{1} << 30), file_, ": token ", quote(content),
                   ": expected an id from 0 to 2^30 - 1, got ", id);
    return static_cast<TokenId>(id);
  }

  std::vector<Added> read_added() const {
    std::vector<Added> added;
    const auto found = all_.find("added_tokens");
    if (found == all_.end()) return added;
    JsonReader reader = whole_.at(found->second);
    for (reader.open_array(); reader.next_element();) {
      const Json token = reader.value();
      const Json &id = member(token, "id"), &content = member(token, "content");
      LONGHAND_CHECK(id.is_int64() && content.is_string(), file_,
                     ": added_tokens: expected an id and a content, got ", quote(token.dump()));
      for (const std::string_view flag : {"single_word", "lstrip", "rstrip"}) {
        LONGHAND_CHECK(!is_true(token, flag), file_, ": added token ", quote(content.string()),
                       ": ", flag, " is not supported");
      }
      if (content.string().empty()) continue;  // an empty token can never be found in a text
      added.push_back({checked_id(id.integer(), content.string()), content.string(),
                       is_true(token, "special"), is_true(token, "normalized")});
    }
    return added;
  }

  void read_vocabulary(const std::vector<Added>& added) {
    const auto found = model_.find("vocab");
    LONGHAND_CHECK(found != model_.end(), file_, ": the model has no \"vocab\"");
    struct Named {
      TokenId id;
      TokenTable::Found found;
      std::size_t begin, end;  // range of the token's bytes in `pool`
    };
    std::vector<Named> tokens;
    std::string pool;
    std::int64_t highest = -1;
    JsonReader reader = whole_.at(found->second);
    for (reader.open_object(); reader.next_member();) {
      const std::size_t begin = pool.size();
      const TokenTable::Found findable = append_bytes(pool, reader.name());
      const std::int64_t number = reader.integer();
      const TokenId id = checked_id(number, reader.name());
      tokens.push_back({id, findable, begin, pool.size()});
      highest = std::max<std::int64_t>(highest, id);
    }
    for (const Added& token : added) highest = std::max<std::int64_t>(highest, token.id);
    const auto count = static_cast<std::int64_t>(tokens.size() + added.size());
    LONGHAND_CHECK(highest < 2 * count + allowed_gaps, file_, ": expected token ids below ",
                   2 * count + allowed_gaps, ", because there are ", count, " tokens, got the id ",
                   highest);
    parts_.tokens = TokenTable(static_cast<std::size_t>(highest + 1));
    const auto bytes = [&](const Named& token) {
      return std::string_view(pool).substr(token.begin, token.end - token.begin);
    };
    constexpr std::size_t ahead = 16;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i + ahead < tokens.size()) parts_.tokens.prefetch(bytes(tokens[i + ahead]));
      in_file("vocab: ",
              [&] { parts_.tokens.add(tokens[i].id, bytes(tokens[i]), tokens[i].found); });
    }
  }

  /// Appends to `out` the bytes of a token, as the token table stores them. `text` is the token's
  /// text in the file. Returns Found::no if merging can never produce the token.
  TokenTable::Found append_bytes(std::string& out, std::string_view text) const {
    if (is_printable(text)) {
      out += text;
      return TokenTable::Found::yes;
    }
    if (spaces()) {
      // Gemma's normalizer replaces each space by U+2581, so a token that contains a space can
      // never be found.
      const bool found = text.find(' ') == std::string_view::npos;
      out += replaced_all(text, space_mark, " ");
      return found ? TokenTable::Found::yes : TokenTable::Found::no;
    }
    const auto bytes = byte_map.bytes(text);
    out += bytes ? std::string_view(*bytes) : text;
    return bytes ? TokenTable::Found::yes : TokenTable::Found::no;
  }

  std::string table_bytes(std::string_view text) const {
    std::string bytes;
    append_bytes(bytes, text);
    return bytes;
  }

  /// True if all characters are printable ASCII characters. The bytes of such a token are its text.
  static bool is_printable(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 127; });
  }

  void read_added_tokens(const std::vector<Added>& added) {
    for (const Added& token : added) {
      // The vocabulary escapes some characters: two spaces are written as "ĠĠ". Added tokens are
      // not escaped. An added token of two spaces is a separate token, even if the vocabulary
      // contains "ĠĠ", which stands for the same bytes.
      std::string bytes;
      const bool findable = append_bytes(bytes, token.content) == TokenTable::Found::yes;
      const auto known = findable ? parts_.tokens.find(bytes) : std::nullopt;
      LONGHAND_CHECK(!known || *known == token.id, file_, ": added token ", quote(token.content),
                     " has the id ", token.id, ", but the id ", known.value_or(0),
                     " in the vocabulary");
      std::string buffer;
      const std::string content(token.normalized ? parts_.normalize(token.content, buffer, nullptr)
                                                 : std::string_view(token.content));
      if (!parts_.tokens.has(token.id)) {
        parts_.tokens.add(token.id, table_bytes(content), TokenTable::Found::no);
      } else {
        LONGHAND_CHECK(parts_.tokens.bytes(token.id) == bytes, file_, ": added token ",
                       quote(token.content), " has the id ", token.id, ", which is the id of ",
                       quote(parts_.tokens.bytes(token.id)));
      }
      auto& where = token.normalized ? parts_.added_late : parts_.added;
      where.push_back({token.id, content, token.special});
    }
  }

  void read_merges() {
    const auto found = model_.find("merges");
    LONGHAND_CHECK(found != model_.end(), file_, ": the model has no \"merges\"");
    MergeBuilder builder(parts_.tokens);
    std::array<std::string, 2> bytes;
    const auto set = [&](std::size_t part, std::string_view text) {
      bytes[part].clear();
      append_bytes(bytes[part], text);
    };
    JsonReader reader = whole_.at(found->second);
    reader.open_array();
    for (std::size_t rank = 0; reader.next_element(); ++rank) {
      if (reader.at_string()) {
        const std::string_view both = reader.string();
        const std::size_t space = both.find(' ');
        LONGHAND_CHECK(space != both.npos && both.find(' ', space + 1) == both.npos, file_,
                       ": merge ", rank, ": expected two tokens separated by a space, got ",
                       quote(both));
        set(0, both.substr(0, space));
        set(1, both.substr(space + 1));
      } else {
        std::size_t count = 0;
        for (reader.open_array(); reader.next_element(); ++count) {
          const std::string_view text = reader.string();
          if (count < 2) set(count, text);
        }
        LONGHAND_CHECK(count == 2, file_, ": merge ", rank, ": expected two tokens, got ", count);
      }
      in_file("", [&] { builder.add(bytes[0], bytes[1]); });
    }
    parts_.merges = in_file("", [&] { return builder.table(); });
    parts_.joined = builder.joined();
  }

  void read_post_processor() {
    const Json whole = member_of(all_, "post_processor");
    for (const Json& step : steps(whole, "processors")) {
      if (is(step, "type", "ByteLevel")) continue;  // affects only the offsets of tokens
      if (!is(step, "type", "TemplateProcessing") || !member(step, "single").is_array()) {
        refuse(file_, "post_processor", step, "ByteLevel or TemplateProcessing");
      }
      read_template(step);
    }
  }

  void read_template(const Json& step) {
    bool after = false;
    for (const Json& part : member(step, "single")) {
      if (is(member(part, "Sequence"), "id", "A") && !std::exchange(after, true)) continue;
      const Json& name = member(member(part, "SpecialToken"), "id");
      if (!name.is_string()) refuse(file_, "post_processor", part, "a SpecialToken or sequence A");
      const Json& ids = member(member(member(step, "special_tokens"), name.string()), "ids");
      if (!ids.is_array())
        refuse(file_, "post_processor", name, "the name of one of the special_tokens");
      for (const Json& id : ids) {
        if (!id.is_int64()) refuse(file_, "post_processor", id, "a token id");
        (after ? parts_.after : parts_.before).push_back(checked_id(id.integer(), name.string()));
      }
    }
    LONGHAND_CHECK(after, file_, ": post_processor: expected a template with sequence A");
  }

  void read_model_flags() {
    const auto nothing = [&](std::string_view name) {
      const Json value = member_of(model_, name);
      LONGHAND_CHECK(value.is_null() || value == "" || value == 0, file_, ": ", name,
                     ": expected no value, got ", quote(value.dump()));
    };
    nothing("dropout");
    nothing("continuing_subword_prefix");
    nothing("end_of_word_suffix");
    parts_.whole_words = member_of(model_, "ignore_merges") == true;
    const bool fallback = member_of(model_, "byte_fallback") == true;
    if (spaces()) {
      LONGHAND_CHECK(
          fallback, file_,
          ": byte_fallback: expected true, because the vocabulary consists of characters");
      return;
    }
    LONGHAND_CHECK(!fallback, file_,
                   ": byte_fallback: expected false, because the vocabulary is ByteLevel");
    const Json unknown = member_of(model_, "unk_token");
    if (!unknown.is_string() || !parts_.tokens.find(table_bytes(unknown.string()))) return;
    for (unsigned byte = 0; byte < 0xf5; ++byte) {
      if (byte == 0xc0 || byte == 0xc1) continue;  // these bytes never occur in UTF-8
      LONGHAND_CHECK(parts_.tokens.find(std::string(1, static_cast<char>(byte))), file_,
                     ": unk_token ", quote(unknown.string()),
                     " can only be used if the vocabulary has a token for each byte of UTF-8; the "
                     "vocabulary lacks the byte ",
                     byte);
    }
  }

  std::string file_;
  JsonReader whole_;
  Sections all_, model_;
  TokenizerParts parts_;
};

}  // namespace

Tokenizer parse_tokenizer_json(std::string_view text, const std::string& file) {
  return Reader(text, file).read();
}

Tokenizer parse_vocabulary_and_merges(std::string_view vocabulary, std::string_view merges,
                                      const std::string& folder) {
  // Converts vocab.json and merges.txt to the format of tokenizer.json.
  Json list = Json::array();
  while (!merges.empty()) {
    const std::size_t end = std::min(merges.find('\n'), merges.size());
    std::string_view line = merges.substr(0, end);
    merges.remove_prefix(std::min(end + 1, merges.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !line.starts_with("#version")) list.push_back(line);
  }
  constexpr std::string_view end_of_text = "<|endoftext|>";
  Json added = Json::array();
  JsonReader reader(vocabulary, folder + "/vocab.json");
  for (reader.open_object(); reader.next_member();) {
    const bool is_end = reader.name() == end_of_text;
    const std::int64_t id = reader.integer();
    if (is_end) added.push_back({{"id", id}, {"content", end_of_text}, {"special", true}});
  }
  reader.finish();
  const Json byte_level{{"type", "ByteLevel"}};
  const std::string whole =
      text(R"({"added_tokens":)", added, R"(,"pre_tokenizer":)", byte_level, R"(,"decoder":)",
           byte_level, R"(,"model":{"vocab":)", vocabulary, R"(,"merges":)", list, "}}");
  return parse_tokenizer_json(whole, folder);
}

Tokenizer read_tokenizer(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) {
    const MappedFile file(path);
    return parse_tokenizer_json(chars(file), path.string());
  }
  if (std::filesystem::exists(path / "tokenizer.json")) {
    return read_tokenizer(path / "tokenizer.json");
  }
  LONGHAND_CHECK(
      std::filesystem::exists(path / "vocab.json") && std::filesystem::exists(path / "merges.txt"),
      path.string(), ": expected tokenizer.json, or vocab.json and merges.txt, in this folder");
  const MappedFile vocabulary(path / "vocab.json"), merges(path / "merges.txt");
  return parse_vocabulary_and_merges(chars(vocabulary), chars(merges), path.string());
}

}  // namespace longhand::nn
