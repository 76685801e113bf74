#include <algorithm>
#include <charconv>
#include <chrono>
#include <iostream>
#include <iterator>

#include "apps/command.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/json.h"
#include "core/mapped_file.h"
#include "core/quote.h"
#include "core/utf8.h"
#include "nn/text/bpe_trainer.h"
#include "nn/text/encoder.h"
#include "nn/text/tokenizer_json.h"

namespace longhand::app::tokenize_command {
namespace {

using nn::ByteRange;
using nn::TokenId;

/// The text to tokenize: a file, standard input, or the arguments after "--".
class Input {
 public:
  explicit Input(const Arguments& arguments) {
    const auto& words = arguments.plain();
    const auto typed = arguments.after_dashes();
    if (!typed.empty()) {
      if (words.size() != typed.size()) wrong_usage("expected either FILE or -- TEXT, got both");
      name_ = "the text";
      for (const std::string& word : typed) text_ += (text_.empty() ? "" : " ") + word;
      view_ = text_;
      return;
    }
    if (words.size() != 1) wrong_usage("expected one FILE, or -- TEXT");
    read(words[0]);
  }
  explicit Input(const std::string& file) { read(file); }

  const std::string& name() const { return name_; }
  std::string_view text() const { return view_; }
  void replace_broken() {
    if (find_broken_utf8(view_) == std::string_view::npos) return;
    text_ = replace_broken_utf8(view_);
    view_ = text_;
  }

 private:
  void read(const std::string& file) {
    name_ = file == "-" ? "standard input" : file;
    if (file == "-") {
      text_.assign(std::istreambuf_iterator<char>(std::cin), {});
      view_ = text_;
    } else {
      file_ = MappedFile(file);
      view_ = {reinterpret_cast<const char*>(file_.bytes().data()), file_.bytes().size()};
    }
  }

  std::string name_, text_;
  MappedFile file_;
  std::string_view view_;
};

/// Writes many numbers to standard output through a buffer.
class Numbers {
 public:
  ~Numbers() { write(); }
  Numbers() = default;
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  void add(std::string_view before, std::uint64_t number) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    text_.append(before).append(digits, end);
    if (text_.size() > (1 << 16)) write();
  }

 private:
  void write() {
    std::cout.write(text_.data(), static_cast<std::streamsize>(text_.size()));
    text_.clear();
  }
  std::string text_;
};

enum class Form { table, ids, count, json };

Form form_from(const Arguments& arguments) {
  if (arguments.flag("ids") + arguments.flag("count") + arguments.json() > 1) {
    wrong_usage("expected at most one of --ids, --count and --json");
  }
  return arguments.flag("ids")     ? Form::ids
         : arguments.flag("count") ? Form::count
         : arguments.json()        ? Form::json
                                   : Form::table;
}

void encode(const Arguments& arguments, const nn::Tokenizer& tokenizer) {
  const Form form = form_from(arguments);
  const bool ranges = arguments.flag("offsets");
  if (ranges && form != Form::table && form != Form::json) {
    wrong_usage("--offsets cannot be combined with --ids or --count");
  }
  Input input(arguments);
  if (arguments.flag("lossy")) input.replace_broken();
  nn::Encoder encoder(tokenizer);
  std::uint64_t count = 0;
  // The JSON output contains all ids first and then all offsets, so the offsets are stored until
  // the ids are printed.
  std::vector<ByteRange> kept;
  if (form == Form::json) std::cout << R"({"ids": [)";
  {
    Numbers numbers;
    const auto sink = [&](std::span<const TokenId> ids, std::span<const ByteRange> where) {
      for (std::size_t i = 0; i < ids.size(); ++i, ++count) {
        if (form == Form::ids) numbers.add(count ? " " : "", ids[i]);
        if (form == Form::json) numbers.add(count ? ", " : "", ids[i]);
        if (form != Form::table) continue;
        std::cout << ids[i] << '\t';
        if (ranges) std::cout << where[i].begin << '\t' << where[i].end << '\t';
        std::cout << quote(tokenizer.token_bytes(ids[i])) << '\n';
      }
      if (form == Form::json) kept.insert(kept.end(), where.begin(), where.end());
    };
    try {
      encoder.encode(input.text(), {.around = !arguments.flag("bare"), .ranges = ranges}, sink);
    } catch (const Error& error) {
      fail(input.name(), ": ", error.what());
    }
  }
  if (form == Form::json) {
    std::cout << ']';
    if (ranges) {
      std::cout << R"(, "offsets": )";
      Numbers numbers;
      for (std::size_t i = 0; i < kept.size(); ++i) {
        numbers.add(i ? "], [" : "[[", kept[i].begin);
        numbers.add(", ", kept[i].end);
      }
    }
    std::cout << (!ranges ? "" : kept.empty() ? "[]" : "]]") << "}\n";
  }
  if (form == Form::count) std::cout << count << '\n';
  if (form == Form::ids) std::cout << '\n';
  if (const auto dropped = encoder.dropped_bytes()) {
    std::cerr << "longhand tokenize: " << dropped
              << " bytes have no token in this vocabulary and were left out\n";
  }
}

/// Parses ids separated by any characters other than digits.
std::vector<TokenId> parse_ids(const Input& input) {
  std::vector<TokenId> ids;
  const std::string_view text = input.text();
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] < '0' || text[at] > '9') {
      const bool between = std::string_view(" \t\r\n,[]").find(text[at]) != std::string_view::npos;
      LONGHAND_CHECK(between, input.name(), ": expected token ids at byte ", at, ", got ",
                     quote(text.substr(at, 20)));
      ++at;
      continue;
    }
    TokenId id = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), id);
    LONGHAND_CHECK(error == std::errc(), input.name(), ": expected token ids below 2^32 at byte ",
                   at, ", got ", quote(text.substr(at, 20)));
    ids.push_back(id);
    at = static_cast<std::size_t>(end - text.data());
  }
  return ids;
}

void decode(const Arguments& arguments, const nn::Tokenizer& tokenizer) {
  const Input input(arguments);
  const std::string text = tokenizer.decode(parse_ids(input), !arguments.flag("bare"));
  if (arguments.json()) {
    std::cout << Json{{"text", text}} << '\n';
  } else {
    std::cout << text;
  }
}

/// Command `train FILE`: trains a tokenizer on a text.
void train(const Arguments& arguments) {
  if (arguments.plain().size() != 2) wrong_usage("expected train FILE");
  nn::BpeTraining training;
  training.size = static_cast<std::size_t>(arguments.integer("size", 256, 1 << 24));
  training.special = arguments.words("special");
  for (const std::string& special : training.special) {
    if (special.empty() || find_broken_utf8(special) != std::string::npos) {
      wrong_usage("--special: expected a text in UTF-8, got ", quote(special));
    }
  }
  const auto pattern = nn::pattern_named(arguments.word("pattern"));
  if (!pattern || *pattern == nn::WordPattern::spaces) {
    wrong_usage("--pattern: expected gpt2, llama3, qwen2 or digits-gpt2, got ",
                quote(arguments.word("pattern")));
  }
  training.pattern = *pattern;
  const std::string& out = arguments.word("out");
  Input input(arguments.plain()[1]);
  if (arguments.flag("lossy")) input.replace_broken();
  const auto start = std::chrono::steady_clock::now();
  const nn::TrainedBpe trained = [&] {
    try {
      return nn::train_bpe(input.text(), training);
    } catch (const Error& error) {
      fail(input.name(), ": ", error.what());
    }
  }();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  write_atomically(out, nn::tokenizer_json(trained).dump());
  if (arguments.json()) {
    std::cout << Json{{"tokens", trained.tokens.size()},
                      {"merges", trained.merges.size()},
                      {"distinct_words", trained.distinct_words},
                      {"bytes", input.text().size()},
                      {"seconds", seconds},
                      {"out", out}}
              << '\n';
  } else {
    std::cout << out << ": " << trained.tokens.size() << " tokens from " << trained.distinct_words
              << " distinct words of " << input.text().size() << " bytes\n";
  }
}

void run(const Arguments& arguments) {
  const bool typed = !arguments.after_dashes().empty();
  if (!typed && !arguments.plain().empty() && arguments.plain()[0] == "train") {
    return train(arguments);
  }
  const nn::Tokenizer tokenizer = nn::read_tokenizer(arguments.word("tokenizer"));
  if (arguments.flag("decode")) {
    decode(arguments, tokenizer);
  } else {
    encode(arguments, tokenizer);
  }
}

const Register command{
    {.name = "tokenize",
     .summary = "converts text to token ids and back, or trains a tokenizer",
     .usage = {"FILE --tokenizer PATH [--ids | --count | --json] [--offsets]",
               "--tokenizer PATH [...] -- TEXT", "FILE --tokenizer PATH --decode",
               "train FILE --out PATH [--size N] [--pattern NAME] [--special TEXT]..."},
     .options =
         {{"tokenizer", "PATH",
           "tokenizer.json, or a folder with tokenizer.json or with vocab.json and merges.txt"},
          {"ids", "", "print only the ids, separated by spaces"},
          {"count", "", "print only the number of tokens"},
          {"offsets", "", "also print the byte range of each token in the text"},
          {"decode", "", "convert ids to text; FILE or TEXT contains the ids"},
          {"bare", "",
           "add no special tokens around the text; with --decode, print no special tokens"},
          {"lossy", "", "replace invalid UTF-8 by U+FFFD; default: stop with an error"},
          {"out", "PATH", "with train, the tokenizer.json to write"},
          {"size", "N", "with train, the size of the vocabulary", "8192"},
          {"pattern", "NAME",
           "with train, the rule that splits text into words: gpt2, llama3, qwen2 or digits-gpt2",
           "gpt2"},
          {"special",
           "TEXT",
           "with train, a special token; can be repeated; the ids are 0, 1, ...",
           {},
           true},
          json_option()},
     .examples = {"tokenize book.txt --tokenizer llama/tokenizer.json --ids",
                  "tokenize --tokenizer gpt2 --offsets -- Hello world",
                  "tokenize ids.txt --tokenizer gpt2 --decode",
                  "tokenize train book.txt --out book.json --size 4096"},
     .notes = "If FILE is -, standard input is read. By default, each line of the output contains\n"
              "an id and the text of the token. The ids are the same as those of Hugging Face's\n"
              "tokenizers.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::tokenize_command
