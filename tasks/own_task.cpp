#include "tasks/own_task.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/quote.h"
#include "core/utf8.h"
#include "tasks/answers.h"
#include "tasks/conversation.h"
#include "tasks/escapes.h"
#include "tasks/record_file.h"
#include "tasks/task_files.h"
#include "tasks/text_vocabulary.h"

namespace longhand::tasks {
namespace {

constexpr std::int64_t longest_record = 1 << 20;                  // tokens
constexpr std::size_t largest_token_list = std::size_t{1} << 19;  // bytes in config.ini
constexpr std::size_t longest_word = 256;                         // bytes
constexpr std::string_view held_out_name = "held-out";
constexpr std::string_view default_between = "\n";

bool learns_tokens(std::string_view tokenizer) {
  return tokenizer == "characters" || tokenizer == "spaces";
}

/// Splits a text into its tokens: characters, or words separated by spaces.
void split_tokens(std::string_view text, bool into_words,
                  const std::function<void(std::string_view)>& take) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = into_words ? std::min(text.find(' ', at), text.size()) - at
                                        : decode_utf8(text.data() + at).length;
    if (size > 0) take(text.substr(at, size));
    at += size + (into_words ? 1 : 0);
  }
}

/// A vocabulary whose encode() reads a prompt of the user and appends the text between prompt and
/// answer.
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
  LONGHAND_CHECK(size == 0, "task files: option vocabulary: needs a tokenizer (--tokenizer), got ",
                 size, " with ", tokenizer);
  if (tokenizer == "bytes") return std::make_unique<ByteVocabulary>();
  const std::string tokens = unescaped(options, "tokens");
  LONGHAND_CHECK(find_broken_utf8(tokens) == std::string::npos,
                 "task files: option tokens: expected UTF-8, got ", quote(tokens));
  const bool of_words = tokenizer == "spaces";
  std::vector<std::string> texts;
  split_tokens(tokens, of_words, [&](std::string_view token) { texts.emplace_back(token); });
  return std::make_unique<WordVocabulary>(std::move(texts), of_words ? " " : "");
}

/// The settings that all files of a task share.
struct OwnSettings {
  explicit OwnSettings(const OptionValues& options)
      : files(parse_task_files(options.text("files"))),
        tokenizer(options.text("tokenizer")),
        chat_template(chat_template_name(options)),
        between(unescaped(options, "between")),
        after(unescaped(options, "after")),
        part(options.text("part")),
        longest(options.integer("longest", 0, longest_record)) {
    LONGHAND_CHECK(find_broken_utf8(between + after) == std::string::npos,
                   "task files: options between and after: expected UTF-8, got ",
                   quote(between + after));
    if (between == "auto") between = default_between;
    if (between == "none") between.clear();
    if (after == "none") after.clear();
    if (options.text("held_out") != "auto") held_out = options.number("held_out", 0, 1);
    LONGHAND_CHECK(chat_template == "none" || !learns_tokens(tokenizer),
                   "task files: option template: needs a tokenizer (--tokenizer), got ",
                   quote(chat_template), " with ", tokenizer);
  }

  bool has_template() const { return chat_template != "none"; }
  /// True if prompt and answer are split into tokens independently of the tokens around them.
  bool counts_tokens() const {
    return !has_template() && (learns_tokens(tokenizer) || tokenizer == "bytes");
  }

  std::vector<TaskFile> files;  // the first is the training file
  std::string tokenizer, chat_template;
  std::string between, after;  // texts between prompt and answer, and after the answer
  std::string part;            // name of a file, or held_out_name
  double held_out = 0;         // share at the end of the training file
  std::int64_t longest = 0;    // maximum tokens of a training sample; 0: not known
};

/// The records of one part of a task.
class OwnRecords {
 public:
  OwnRecords(const OwnSettings& settings, const Vocabulary& vocabulary,
             const ConversationFormat& format)
      : settings_(settings),
        format_(format),
        size_(vocabulary.size()),
        records_(path_of(settings)) {
    if (!settings.has_template()) between_ = vocabulary.encode_part(settings.between);
    const std::string name = path_of(settings).string();
    LONGHAND_CHECK(records_.size() > 0, name, ": expected one record per line, ",
                   R"({"prompt": "...", "answer": "..."}, got none)");
    end_ = records_.size();
    const auto held_out = static_cast<std::uint64_t>(
        std::ceil(settings.held_out * static_cast<double>(records_.size())));
    if (settings.part == held_out_name) begin_ = end_ - held_out;
    if (settings.part == "train") end_ -= held_out;
    LONGHAND_CHECK(begin_ < end_, name, ": expected more than ", records_.size(),
                   " records, because ", held_out, " are held out (--task.held_out)");
    // Makes every sample once, so that errors are reported before training starts.
    for (std::uint64_t i = 0; i < count(); ++i) {
      longest_ = std::max(longest_, std::ssize(sample_at(i).tokens));
    }
  }

  std::uint64_t count() const { return end_ - begin_; }
  std::int64_t longest() const { return longest_; }
  std::string place(std::uint64_t number) const { return records_.place(begin_ + number); }
  Answer record(std::uint64_t number) const {
    return Answer::parse(records_.line(begin_ + number), place(number));
  }

  Sample sample_at(std::uint64_t number) const {
    LONGHAND_CHECK(number < count(), "expected a record below ", count(), ", got ", number);
    const std::string place = this->place(number);
    RecordMarks marks;
    Answer record = Answer::parse(records_.line(begin_ + number), place, marks);
    if (!settings_.after.empty() && record.answer.ends_with(settings_.after)) {
      record.answer.resize(record.answer.size() - settings_.after.size());
    }
    LONGHAND_CHECK(!record.answer.empty(), place, ": expected an answer, got an empty one");
    Sample sample;
    std::vector<std::int32_t> answer;
    try {
      sample.tokens = format_.prompt(
          std::vector<nn::ChatMessage>{{nn::ChatMessage::Role::user, record.prompt}});
      answer = format_.answer(record.answer);
    } catch (const Error& error) {
      fail(place, ": ", error.what(),
           learns_tokens(settings_.tokenizer)
               ? "; the tokens are those of the files with which the run began (task.tokens)"
               : "");
    }
    const auto prompt = std::ssize(sample.tokens);
    sample.tokens.insert(sample.tokens.end(), between_.begin(), between_.end());
    const auto begin = std::ssize(sample.tokens);
    LONGHAND_CHECK(begin > 0, place, ": expected a prompt of at least one token, got none");
    const auto length = std::ssize(answer);
    LONGHAND_CHECK(begin + length <= longest_record, place, ": expected at most ", longest_record,
                   " tokens, got ", begin + length);
    sample.tokens.insert(sample.tokens.end(), answer.begin(), answer.end());
    LONGHAND_CHECK(std::ranges::max(sample.tokens) < size_, place, ": expected tokens below ",
                   size_, ", got ", std::ranges::max(sample.tokens));
    sample.targets.assign(sample.tokens.size(), Sample::not_counted);
    const auto score = [&](std::int64_t i) {
      sample.asked.push_back(static_cast<std::int32_t>(begin + i - 1));
      sample.targets[static_cast<std::size_t>(begin + i - 1)] = answer[static_cast<std::size_t>(i)];
    };
    if (marks.scored) {
      for (const std::int32_t i : *marks.scored) {
        LONGHAND_CHECK(i < length, place, ": \"scored\": expected indices below ", length,
                       ", the tokens of the answer, got ", i);
        score(i);
      }
    } else {
      for (std::int64_t i = 0; i < length; ++i) score(i);
    }
    sample.stated = rows_of(marks, prompt, begin, std::ssize(sample.tokens), place);
    return sample;
  }

 private:
  static const std::filesystem::path& path_of(const OwnSettings& settings) {
    LONGHAND_CHECK(!settings.files.empty(), "task files: expected files (--task FOLDER), got none");
    if (settings.part == held_out_name) return settings.files.front().path;
    const auto file = std::ranges::find(settings.files, settings.part, &TaskFile::name);
    LONGHAND_CHECK(file != settings.files.end(), "task files: expected a file named ",
                   quote(settings.part), ", got none");
    return file->path;
  }

  /// Converts pairs of a record, whose numbers skip the text between prompt and answer.
  std::vector<ReferenceRow> rows_of(const RecordMarks& marks, std::int64_t prompt,
                                    std::int64_t begin, std::int64_t end,
                                    const std::string& place) const {
    if (marks.pairs.empty()) return {};
    LONGHAND_CHECK(settings_.counts_tokens(), place,
                   ": \"pairs\": expected characters, spaces or bytes, got --tokenizer ",
                   settings_.tokenizer);
    const auto token_of = [&](std::int64_t i) {
      return static_cast<std::int32_t>(i < prompt ? i : i - prompt + begin);
    };
    std::map<std::int32_t, std::set<std::int32_t>> rows;
    for (const auto& [i, j] : marks.pairs) {
      LONGHAND_CHECK(token_of(i) < end, place, ": \"pairs\": expected numbers below ",
                     end - (begin - prompt), ", the tokens of prompt and answer, got ", i);
      rows[token_of(i) - 1].insert(token_of(j));
    }
    std::vector<ReferenceRow> all;
    for (const auto& [row, columns] : rows) {
      all.push_back({.row = row, .columns = {columns.begin(), columns.end()}});
    }
    return all;
  }

  const OwnSettings& settings_;
  const ConversationFormat& format_;
  std::vector<std::int32_t> between_;
  std::int32_t size_;  // size of the vocabulary
  RecordFile records_;
  std::uint64_t begin_ = 0, end_ = 0;
  std::int64_t longest_ = 1;
};

class OwnTask final : public Task {
 public:
  explicit OwnTask(const OptionValues& options)
      : settings_(options),
        tokens_(vocabulary_of(options)),
        format_(*tokens_, chat_of(settings_, options),
                settings_.has_template() ? std::vector<std::int32_t>() : encoded(settings_.after)) {
    if (!settings_.has_template()) between_ = encoded(settings_.between);
    if (between_.empty()) return;
    prompts_ = std::make_unique<PromptVocabulary>(vocabulary_of(options), settings_.between);
  }

  const Vocabulary& vocabulary() const override { return prompts_ ? *prompts_ : *tokens_; }
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

  std::string answer(std::string_view prompt, int) const override {
    std::string found;
    for_answers(prompt, [&](std::span<const std::int32_t> rest) {
      if (found.empty()) found = tokens_->decode(rest);
    });
    LONGHAND_CHECK(!found.empty(), "task files: expected a prompt of the file, got ",
                   quote(prompt));
    return found;
  }

  /// Accepts an answer with or without its end.
  std::optional<std::string> check(std::string_view prompt, std::string_view answer,
                                   int) const override {
    std::vector<std::int32_t> given;
    const std::string wrong = encoded_part(answer, given);
    if (!wrong.empty()) return wrong;
    if (settings_.files.empty()) return "expected a task with files (--task FOLDER)";
    std::string expected;
    bool right = false;
    for_answers(prompt, [&](std::span<const std::int32_t> rest) {
      const std::size_t end = std::min(rest.size(), format_.end().size());
      right = right || std::ranges::equal(rest, given) ||
              std::ranges::equal(rest.first(rest.size() - end), given);
      if (expected.empty()) expected = tokens_->decode(rest.first(rest.size() - end));
    });
    if (right) return std::nullopt;
    if (expected.empty()) return text("expected a prompt of the file, got ", quote(prompt));
    return text("expected ", quote(expected), ", got ", quote(answer));
  }

 private:
  static std::optional<nn::ChatTemplate> chat_of(const OwnSettings& settings,
                                                 const OptionValues& options) {
    if (!settings.has_template()) return std::nullopt;
    return nn::ChatTemplate(settings.chat_template, options.text("date"));
  }

  /// Encodes a text of the settings. Without files, the vocabulary is empty and so is the result.
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

  /// Calls `body` with the rest of every sample that has this prompt. The prompt may also contain
  /// the beginning of the answer.
  void for_answers(std::string_view prompt,
                   const std::function<void(std::span<const std::int32_t>)>& body) const {
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

  /// Opens the file when the first sample is needed, because a trained model can be used without
  /// the file.
  const OwnRecords& records() const {
    const std::lock_guard lock(opening_);
    if (!records_) {
      auto opened = std::make_unique<const OwnRecords>(settings_, *tokens_, format_);
      LONGHAND_CHECK(settings_.part != "train" || settings_.longest == 0 ||
                         opened->longest() <= settings_.longest,
                     settings_.files.front().path.string(), ": expected samples of at most ",
                     settings_.longest, " tokens, as when the run began, got ", opened->longest());
      records_ = std::move(opened);
    }
    return *records_;
  }

  OwnSettings settings_;
  std::unique_ptr<const Vocabulary> tokens_;
  ConversationFormat format_;
  std::vector<std::int32_t> between_;
  std::unique_ptr<const Vocabulary> prompts_;  // null: there is no text between prompt and answer
  mutable std::mutex opening_;
  mutable std::unique_ptr<const OwnRecords> records_;
};

std::vector<Distribution> further(const OptionValues& values) {
  std::vector<Distribution> all;
  const auto add = [&all](const std::string& name) {
    all.push_back({name, name, [name](OptionValues& v) { v.set("part", name); }});
  };
  const OwnSettings settings(values);
  if (settings.held_out > 0) add(std::string(held_out_name));
  for (const TaskFile& file : settings.files) {
    if (&file != &settings.files.front()) add(file.name);
  }
  return all;
}

/// The last token of a text; empty for an empty text.
std::string last_token(std::string_view text, bool of_words) {
  std::string last;
  split_tokens(text, of_words, [&](std::string_view token) { last = token; });
  return last;
}

/// A mark that no record contains, if the tokens of all records are known.
std::string_view mark_outside(const std::set<std::string, std::less<>>& found, bool is_known) {
  for (const std::string_view mark : {"=", ">", "|"}) {
    if (is_known && !found.contains(mark)) return mark;
  }
  return default_between;
}

/// Sets the options whose values depend on the contents of the files.
void complete(OptionValues& values) {
  const std::vector<TaskFile> files = find_task_files(values.text("files"));
  values.set("files", list_of(files));
  if (values.text("held_out") == "auto") values.set("held_out", files.size() == 1 ? "0.1" : "0");
  OwnSettings{values};  // checks the options
  const std::string& tokenizer = values.text("tokenizer");
  const bool of_words = tokenizer == "spaces";
  const bool collects = learns_tokens(tokenizer) && values.text("tokens").empty();
  const bool decides = values.text("between") == "auto";
  if (collects || decides) {
    std::set<std::string, std::less<>> found;
    std::size_t bytes = 0;
    const auto add = [&](std::string_view token, const std::string& place) {
      if (found.contains(token)) return;
      LONGHAND_CHECK(token.size() <= longest_word, place, ": expected words of at most ",
                     longest_word, " bytes, got one of ", token.size());
      bytes += escaped(token).size() + (of_words ? 2 : 0);
      LONGHAND_CHECK(bytes <= largest_token_list, place,
                     ": expected fewer different tokens; --tokenizer bytes needs no list of them");
      found.emplace(token);
    };
    std::set<std::string> last;  // last tokens of the training prompts
    for (const TaskFile& file : files) {
      if (!collects && &file != &files.front()) break;
      const RecordFile records(file.path);
      for (std::uint64_t i = 0; i < records.size(); ++i) {
        const std::string place = records.place(i);
        const Answer record = Answer::parse(records.line(i), place);
        if (&file == &files.front() && last.size() < 2) {
          last.insert(last_token(record.prompt, of_words));
        }
        if (!collects) continue;
        for (const std::string& text : {record.prompt, record.answer}) {
          split_tokens(text, of_words, [&](std::string_view token) { add(token, place); });
        }
      }
    }
    if (decides) {
      const bool is_marked = last.size() == 1 && !last.begin()->empty();
      const bool is_framed = values.text("template") != "none";
      values.set("between",
                 is_marked || is_framed ? "none" : escaped(mark_outside(found, collects)));
    }
    if (collects) {
      for (const char* name : {"between", "after"}) {
        const std::string text = unescaped(values, name);
        if (text == "none") continue;
        split_tokens(text, of_words, [&](std::string_view token) { add(token, name); });
      }
      std::string list;
      for (const std::string& token : found) {
        list += (of_words && !list.empty() ? escaped(" ") : "") + escaped(token);
      }
      values.set("tokens", list);
    }
  }
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
      .summary = "prompts and answers from your own files",
      .options =
          {{"files", "", "list of JSONL files, the training file first"},
           {"tokenizer", "characters",
            "characters, spaces (words with spaces between them), bytes, a tokenizer.json, or a "
            "folder with one",
            "tokenizer"},
           {"tokens", "",
            "list of the characters, or of the words with \\s between them; default: "
            "those of the files"},
           {"vocabulary", "0",
            "with a tokenizer: vocabulary size of the model; 0: that of the tokenizer"},
           {"template", "none",
            "with a tokenizer: chat template: none, auto (the tokenizer's own), or one "
            "of " +
                nn::ChatTemplate::names()},
           {"date", "26 Jul 2024", "date in llama3.2's template"},
           {"between", "auto",
            "text between prompt and answer, or none; auto: none if all training "
            "prompts end with the same token, otherwise a mark that no record contains"},
           {"after", "\\n", "text after every answer, or none"},
           {"held_out", "auto",
            "share at the end of the training file that is held out; auto: 0.1 if "
            "there is no other file, otherwise 0"},
           {"longest", "0", "maximum tokens of a training sample; 0: that of the training file"},
           {"part", "train", "name of the file from which samples are taken"}},
      .distributions = {{"train", "train",
                         [](OptionValues& values) { values.set("part", "train"); }, false}},
      .make_with = [](const OptionValues& values) { return std::make_unique<OwnTask>(values); },
      .files = paths_of,
      .further = further,
      .complete = complete};
}

}  // namespace longhand::tasks
