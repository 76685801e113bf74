#include "tasks/own_task.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/quote.h"
#include "core/utf8.h"
#include "tasks/escapes.h"
#include "tasks/own_records.h"
#include "tasks/text_vocabulary.h"

namespace longhand::tasks {
namespace {

// Maximum size of the option `tokens` in bytes. The option is stored in config.ini.
constexpr std::size_t largest_token_list = std::size_t{1} << 19;
constexpr std::size_t longest_word = 256;  // maximum bytes of a word

/// A vocabulary for prompts that a user types: encode() appends the tokens of the text between
/// prompt and answer.
class PromptVocabulary final : public Vocabulary {
 public:
  PromptVocabulary(std::unique_ptr<const Vocabulary> tokens, std::string_view between)
      : tokens_(std::move(tokens)), between_(tokens_->encode_part(between)) {}

  std::int32_t size() const override { return tokens_->size(); }
  std::string text(std::int32_t token) const override { return tokens_->text(token); }
  std::optional<std::int32_t> find(std::string_view text) const override {
    return tokens_->find(text);
  }
  std::string_view separator() const override { return tokens_->separator(); }
  using Vocabulary::encode;
  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> all = tokens_->encode(text);
    all.insert(all.end(), between_.begin(), between_.end());
    return all;
  }
  std::vector<std::int32_t> encode_part(std::string_view text) const override {
    return tokens_->encode_part(text);
  }
  std::vector<std::int32_t> beginning() const override { return tokens_->beginning(); }
  std::string decode(std::span<const std::int32_t> tokens) const override {
    return tokens_->decode(tokens);
  }

 private:
  std::unique_ptr<const Vocabulary> tokens_;
  std::vector<std::int32_t> between_;
};

std::unique_ptr<const Vocabulary> vocabulary_of(const OptionValues& options) {
  const std::string& tokenizer = options.text("tokenizer");
  const std::int64_t size = options.integer("vocabulary", 0, 1 << 24);
  if (names_tokenizer(tokenizer)) {
    return std::make_unique<TokenizerVocabulary>(shared_tokenizer(tokenizer), size);
  }
  LONGHAND_CHECK(size == 0, "task files: option vocabulary: the value ", size,
                 " needs a tokenizer file (--tokenizer), got --tokenizer ", tokenizer);
  if (tokenizer == "bytes") return std::make_unique<ByteVocabulary>();
  const std::string tokens = unescaped(options, "tokens");
  LONGHAND_CHECK(find_broken_utf8(tokens) == std::string::npos,
                 "task files: option tokens: expected UTF-8, got ", quote(tokens));
  const bool of_words = tokenizer == "spaces";
  std::vector<std::string> texts;
  split_tokens(tokens, of_words, [&](std::string_view token) { texts.emplace_back(token); });
  return std::make_unique<WordVocabulary>(std::move(texts), of_words ? " " : "");
}

class OwnTask final : public Task {
 public:
  explicit OwnTask(const OptionValues& options)
      : settings_(options),
        tokens_(vocabulary_of(options)),
        format_(*tokens_, chat_of(settings_, options),
                settings_.has_template() ? std::vector<std::int32_t>() : encoded(settings_.after)) {
    if (settings_.has_template() || encoded(settings_.between).empty()) return;
    prompts_ = std::make_unique<PromptVocabulary>(vocabulary_of(options), settings_.between);
  }

  const Vocabulary& vocabulary() const override { return prompts_ ? *prompts_ : *tokens_; }
  Outputs outputs() const override {
    if (!has_labels()) return Task::outputs();
    return {settings_.predictions, std::ssize(settings_.labels), false};
  }
  std::int64_t longest() const override {
    const bool is_known = settings_.part == "train" && settings_.longest > 0;
    return is_known ? settings_.longest : records().longest();
  }
  std::string_view main_metric() const override { return "sequences"; }
  std::vector<std::int32_t> ends() const override {
    if (format_.end().empty()) return {};
    return {format_.end().front()};
  }

  std::uint64_t count() const override { return records().count(); }
  Sample sample_at(std::uint64_t number, double) const override {
    return records().sample_at(number);
  }
  Sample sample(Rng& rng, int) const override {
    const double place = rng.uniform() * static_cast<double>(count());
    return sample_at(std::min(count() - 1, static_cast<std::uint64_t>(place)), 0);
  }

  void score(const Sample& sample, std::span<const std::int32_t> said,
             Tally& tally) const override {
    add_answer(sample, said, tally);
  }
  std::vector<ReferenceRow> reference(const Sample& sample) const override { return sample.stated; }

  /// If the task has labels, the answer lists them.
  std::pair<std::string, std::string> as_text(const Sample& sample) const override {
    if (!has_labels()) return Task::as_text(sample);
    std::string labels;
    for (const std::int32_t output : sample.asked) {
      const auto right = sample.targets[static_cast<std::size_t>(output)];
      labels += (labels.empty() ? "" : " ") + settings_.labels[static_cast<std::size_t>(right)];
    }
    return {tokens_->decode(sample.tokens), labels};
  }

  std::string answer(std::string_view prompt, int) const override {
    std::string found;
    if (has_labels()) found = labels_of(prompt);
    for_answers(prompt, [&](std::span<const std::int32_t> rest) {
      if (found.empty()) found = tokens_->decode(rest);
    });
    LONGHAND_CHECK(!found.empty(), "task files: expected a prompt that is in the file, got ",
                   quote(prompt));
    return found;
  }

  /// The answer may include the text that ends it (option `after`) or omit this text.
  std::optional<std::string> check(std::string_view prompt, std::string_view answer,
                                   int) const override {
    if (settings_.files.empty()) return "expected a task with files (--task FOLDER)";
    std::string expected;
    if (has_labels()) {
      expected = labels_of(prompt);
      if (expected == answer && !expected.empty()) return std::nullopt;
      if (expected.empty()) return text("expected a prompt of the file, got ", quote(prompt));
      return text("expected the labels ", quote(expected), ", got ", quote(answer));
    }
    std::vector<std::int32_t> given;
    const std::string wrong = encoded_part(answer, given);
    if (!wrong.empty()) return wrong;
    bool right = false;
    for_answers(prompt, [&](std::span<const std::int32_t> rest) {
      const std::size_t end = std::min(rest.size(), format_.end().size());
      right = right || std::ranges::equal(rest, given) ||
              std::ranges::equal(rest.first(rest.size() - end), given);
      if (expected.empty()) expected = tokens_->decode(rest.first(rest.size() - end));
    });
    if (right) return std::nullopt;
    if (expected.empty()) return text("expected a prompt that is in the file, got ", quote(prompt));
    return text("expected ", quote(expected), ", got ", quote(answer));
  }

 private:
  bool has_labels() const { return !settings_.labels.empty(); }
  /// The labels of a prompt of the file. Empty if the file does not contain the prompt.
  std::string labels_of(std::string_view prompt) const {
    for (std::uint64_t i = 0; i < count(); ++i) {
      if (records().record(i).prompt == prompt) return as_text(records().sample_at(i)).second;
    }
    return {};
  }

  static std::optional<nn::ChatTemplate> chat_of(const OwnSettings& settings,
                                                 const OptionValues& options) {
    if (!settings.has_template()) return std::nullopt;
    return nn::ChatTemplate(settings.chat_template, options.text("date"));
  }

  /// Encodes a text from the settings, such as the text after an answer. If there are no files, the
  /// vocabulary is empty, and so is the result.
  std::vector<std::int32_t> encoded(const std::string& text) const {
    return tokens_->size() == 0 ? std::vector<std::int32_t>() : tokens_->encode_part(text);
  }
  std::string encoded_part(std::string_view text, std::vector<std::int32_t>& tokens) const {
    try {
      tokens = tokens_->encode_part(text);
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  }

  /// `prompt` is a complete prompt or, to continue an answer, a prompt and the beginning of its
  /// answer. Calls `body` for every sample that begins with this text. `body` receives the tokens
  /// of the answer, or of the rest of the answer, with the answer's end.
  void for_answers(std::string_view prompt,
                   const std::function<void(std::span<const std::int32_t>)>& body) const {
    if (has_labels()) return;
    std::vector<std::int32_t> given;
    if (!tokens_->encode(prompt, given).empty()) return;
    const OwnRecords& all = records();
    for (std::uint64_t i = 0; i < all.count(); ++i) {
      const Sample sample = all.sample_at(i);
      const auto tokens = std::span(sample.tokens);
      const auto begin = static_cast<std::size_t>(sample.asked.front()) + 1;
      if (all.record(i).prompt == prompt) {
        body(tokens.subspan(begin));
      } else if (given.size() >= begin && given.size() < tokens.size() &&
                 std::ranges::equal(tokens.first(given.size()), given)) {
        body(tokens.subspan(given.size()));
      }
    }
  }

  /// The file is opened only when the first sample is needed, because a trained model can be used
  /// without the file.
  const OwnRecords& records() const {
    const std::lock_guard lock(opening_);
    if (!records_) {
      auto opened = std::make_unique<const OwnRecords>(settings_, *tokens_, format_);
      LONGHAND_CHECK(settings_.part != "train" || settings_.longest == 0 ||
                         opened->longest() <= settings_.longest,
                     settings_.files.front().path.string(), ": expected samples of at most ",
                     settings_.longest, " tokens, the maximum when the run began, got ",
                     opened->longest());
      records_ = std::move(opened);
    }
    return *records_;
  }

  OwnSettings settings_;
  std::unique_ptr<const Vocabulary> tokens_;
  ConversationFormat format_;
  // The vocabulary that adds the text between prompt and answer to each prompt; null if this text
  // is empty.
  std::unique_ptr<const Vocabulary> prompts_;
  mutable std::mutex opening_;
  mutable std::unique_ptr<const OwnRecords> records_;
};

std::vector<Distribution> further(const OptionValues& values) {
  std::vector<Distribution> all;
  const auto add = [&all](const std::string& name) {
    all.push_back({name, [name](OptionValues& v) { v.set("part", name); }});
  };
  const OwnSettings settings(values);
  if (settings.held_out > 0) add(std::string(validation_name));
  for (const TaskFile& file : settings.files) {
    if (&file != &settings.files.front()) add(file.name);
  }
  return all;
}

/// The last token of a text. If the text is empty, the result is empty.
std::string last_token(std::string_view text, bool of_words) {
  std::string last;
  split_tokens(text, of_words, [&](std::string_view token) { last = token; });
  return last;
}

/// The distinct tokens of the files, for a vocabulary that consists of them.
class TokenList {
 public:
  explicit TokenList(bool of_words) : of_words_(of_words) {}

  /// Adds the tokens of a text. Error messages begin with `place`.
  void add(std::string_view text, const std::string& place) {
    split_tokens(text, of_words_, [&](std::string_view token) {
      if (found_.contains(token)) return;
      LONGHAND_CHECK(token.size() <= longest_word, place, ": expected words of at most ",
                     longest_word, " bytes, got a word of ", token.size(), " bytes");
      bytes_ += escaped(token).size() + (of_words_ ? 2 : 0);
      LONGHAND_CHECK(bytes_ <= largest_token_list, place,
                     ": too many different tokens: expected a list of tokens of at most ",
                     largest_token_list, " bytes; --tokenizer bytes needs no list");
      found_.emplace(token);
    });
  }
  bool contains(std::string_view token) const { return found_.contains(token); }

  /// The list of tokens, written as a value of the option `tokens`.
  std::string option() const {
    std::string list;
    for (const std::string& token : found_) {
      list += (of_words_ && !list.empty() ? escaped(" ") : "") + escaped(token);
    }
    return list;
  }

 private:
  bool of_words_;
  std::set<std::string, std::less<>> found_;
  std::size_t bytes_ = 0;
};

/// A mark to put between prompt and answer: one of "=", ">" and "|" that no record contains. If
/// there is none, or if not all tokens of the records are known, the mark is default_between.
std::string_view mark_outside(const TokenList& tokens, bool is_known) {
  for (const std::string_view mark : {"=", ">", "|"}) {
    if (is_known && !tokens.contains(mark)) return mark;
  }
  return default_between;
}

/// True if all prompts of the file end with the same token.
bool ends_with_mark(const std::filesystem::path& file, bool of_words) {
  const RecordFile records(file);
  std::string last;
  for (std::uint64_t i = 0; i < records.size(); ++i) {
    const std::string prompt = Answer::parse(records.line(i), records.place(i)).prompt;
    const std::string token = last_token(prompt, of_words);
    if (token.empty() || (i > 0 && token != last)) return false;
    last = token;
  }
  return records.size() > 0;
}

void add_records(TokenList& tokens, const std::filesystem::path& file, bool with_answers) {
  const RecordFile records(file);
  for (std::uint64_t i = 0; i < records.size(); ++i) {
    const std::string place = records.place(i);
    const Answer record = Answer::parse(records.line(i), place);
    tokens.add(record.prompt, place);
    if (with_answers) tokens.add(record.answer, place);
  }
}

/// The labels of a record. No value if the record has none.
std::optional<std::vector<RecordMarks::Label>> labels_in(const RecordFile& records,
                                                         std::uint64_t number) {
  RecordMarks marks;
  Answer::parse(records.line(number), records.place(number), marks, true);
  return marks.labels;
}

/// Sets the options `labels` and `predictions` if their values must be determined from the files.
void complete_labels(OptionValues& values, const std::vector<TaskFile>& files) {
  if (values.text("labels") != "auto") return;
  const RecordFile training(files.front().path);
  values.set("labels", "none");
  if (training.size() == 0 || !labels_in(training, 0)) return;
  // Shorter labels come first, so numbers are in ascending order.
  const auto before = [](const std::string& a, const std::string& b) {
    return std::pair(a.size(), std::string_view(a)) < std::pair(b.size(), std::string_view(b));
  };
  std::set<std::string, decltype(before)> found(before);
  std::int64_t predictions = 1;
  for (const TaskFile& file : files) {
    const RecordFile records(file.path);
    for (std::uint64_t i = 0; i < records.size(); ++i) {
      const auto labels = labels_in(records, i);
      LONGHAND_CHECK(labels, records.place(i),
                     ": expected \"labels\", as the first record has, got none");
      for (const RecordMarks::Label& label : *labels) {
        found.insert(label.text);
        predictions = std::max<std::int64_t>(predictions, label.group + 1);
      }
    }
  }
  std::string list;
  for (const std::string& label : found) {
    list += (list.empty() ? "" : escaped(" ")) + escaped(label);
  }
  LONGHAND_CHECK(list.size() <= largest_token_list, files.front().path.string(),
                 ": too many different labels: expected a list of labels of at most ",
                 largest_token_list, " bytes, got ", list.size(), " bytes");
  values.set("labels", list);
  if (values.text("predictions") == "0") values.set("predictions", std::to_string(predictions));
}

/// Sets the options `tokens` and `between` if their values must be determined from the files.
void complete_tokens(OptionValues& values, const std::vector<TaskFile>& files) {
  const std::string& tokenizer = values.text("tokenizer");
  const bool of_words = tokenizer == "spaces";
  const bool collects = learns_tokens(tokenizer) && values.text("tokens").empty();
  const bool has_answers = values.text("labels") == "none";
  TokenList tokens(of_words);
  if (collects) {
    for (const TaskFile& file : files) add_records(tokens, file.path, has_answers);
  }
  if (!has_answers) {
    values.set("between", "none");
    values.set("after", "none");
  }
  if (values.text("between") == "auto") {
    const bool needs_none =
        values.text("template") != "none" || ends_with_mark(files.front().path, of_words);
    values.set("between", needs_none ? "none" : escaped(mark_outside(tokens, collects)));
  }
  if (!collects) return;
  for (const char* name : {"between", "after"}) {
    const std::string text = unescaped(values, name);
    if (text != "none") tokens.add(text, name);
  }
  values.set("tokens", tokens.option());
}

/// Sets all options whose values are determined from the files.
void complete(OptionValues& values) {
  const std::vector<TaskFile> files = find_task_files(values.text("files"));
  values.set("files", list_of(files));
  if (values.text("held_out") == "auto") values.set("held_out", files.size() == 1 ? "0.1" : "0");
  complete_labels(values, files);
  OwnSettings{values};  // the constructor checks the options
  complete_tokens(values, files);
  if (values.integer("longest", 0, longest_record) == 0) {
    values.set("longest", std::to_string(OwnTask(values).longest()));
  }
  // Reads all test samples once, so that errors are reported before training starts.
  for (const Distribution& distribution : further(values)) {
    OptionValues test = values;
    distribution.change(test);
    OwnTask(test).longest();
  }
}

NamedPaths paths_of(const OptionValues& values) {
  NamedPaths paths;
  for (const TaskFile& file : parse_task_files(values.text("files"))) {
    paths.emplace_back(file.name, file.path);
  }
  return paths;
}

}  // namespace

TaskKind own_task() {
  return {
      .name = "files",
      .summary = "answer prompts from your own files",
      .options =
          {{"files", "", "list of JSONL files; the first is the training file"},
           {"tokenizer", "characters",
            "tokenizer: characters, spaces (words separated by spaces), bytes, a tokenizer.json "
            "file, or a folder that contains one",
            "tokenizer"},
           {"tokens", "",
            "vocabulary: all characters, or all words separated by \\s; default: those in the "
            "files"},
           {"vocabulary", "0",
            "with a tokenizer file: vocabulary size of the model; 0: the tokenizer's vocabulary "
            "size"},
           {"template", "none",
            "chat template (needs a tokenizer file): none, auto (the tokenizer's own), or one of " +
                nn::ChatTemplate::names()},
           {"date", "26 Jul 2024", "date that the llama3.2 template inserts"},
           {"between", "auto",
            "text between prompt and answer, or none; auto: none if all training "
            "prompts end with the same token, otherwise a mark that no record contains"},
           {"after", "\\n", "text after every answer, or none"},
           {"held_out", "auto",
            "share of the training file, at its end, that is held out for validation; auto: 0.1 if "
            "there is no other file, otherwise 0"},
           {"longest", "0",
            "maximum number of tokens of a training sample; 0: computed from the training file"},
           {"labels", "auto",
            "labels that tokens can have, separated by \\s; auto: the labels in the files, or none "
            "if the first training record has no labels"},
           {"predictions", "0", "number of labels per token; 0: as many as the files need"},
           {"part", "train", "name of the file from which samples are taken"}},
      .distributions = {{"train", [](OptionValues& values) { values.set("part", "train"); },
                         false}},
      .make_with = [](const OptionValues& values) { return std::make_unique<OwnTask>(values); },
      .files = paths_of,
      .further = further,
      .complete = complete};
}

}  // namespace longhand::tasks
