#include "tasks/own_records.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "core/quote.h"
#include "core/utf8.h"
#include "tasks/escapes.h"

namespace longhand::tasks {
namespace {

const std::filesystem::path& path_of(const OwnSettings& settings) {
  LONGHAND_CHECK(!settings.files.empty(), "task files: expected files (--task FOLDER), got none");
  if (settings.is_held_out()) return settings.files.front().path;
  const auto file = std::ranges::find(settings.files, settings.part, &TaskFile::name);
  LONGHAND_CHECK(file != settings.files.end(), "task files: expected a file named ",
                 quote(settings.part), ", got none");
  return file->path;
}

std::vector<ReferenceRow> reference_of(const std::map<std::int32_t, std::set<std::int32_t>>& rows) {
  std::vector<ReferenceRow> all;
  for (const auto& [row, columns] : rows) {
    all.push_back({.row = row, .columns = {columns.begin(), columns.end()}});
  }
  return all;
}

}  // namespace

bool learns_tokens(std::string_view tokenizer) {
  return tokenizer == "characters" || tokenizer == "spaces";
}

void split_tokens(std::string_view text, bool into_words,
                  const std::function<void(std::string_view)>& take) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = into_words ? std::min(text.find(' ', at), text.size()) - at
                                        : decode_utf8(text.data() + at).length;
    if (size > 0) take(text.substr(at, size));
    at += size + (into_words ? 1 : 0);
  }
}

OwnSettings::OwnSettings(const OptionValues& options)
    : files(parse_task_files(options.text("files"))),
      tokenizer(options.text("tokenizer")),
      chat_template(chat_template_name(options)),
      between(unescaped(options, "between")),
      after(unescaped(options, "after")),
      part(options.text("part")),
      longest(options.integer("longest", 0, longest_record)) {
  LONGHAND_CHECK(find_broken_utf8(between + after) == std::string::npos,
                 "task files: options \"between\" and \"after\": expected UTF-8, got ",
                 quote(between + after));
  if (between == "auto") between = default_between;
  if (between == "none") between.clear();
  if (after == "none") after.clear();
  if (options.text("held_out") != "auto") held_out = options.number("held_out", 0, 1);
  LONGHAND_CHECK(held_out == 0 || std::ranges::count(files, validation_name, &TaskFile::name) == 0,
                 "task files: option held_out: expected 0, because a file has the name ",
                 validation_name, ", got ", held_out);
  if (options.text("labels") != "auto" && options.text("labels") != "none") {
    split_tokens(unescaped(options, "labels"), true, [&](std::string_view label) {
      class_of.emplace(label, static_cast<std::int32_t>(labels.size()));
      labels.emplace_back(label);
    });
    LONGHAND_CHECK(class_of.size() == labels.size(),
                   "task files: option labels: expected labels without duplicates, got ",
                   quote(options.text("labels")));
    LONGHAND_CHECK(
        labels.empty() || counts_tokens(),
        "task files: option labels: expected --tokenizer characters, spaces or bytes, and "
        "no chat template, got --tokenizer ",
        tokenizer, " and the template ", quote(chat_template));
  }
  predictions = std::max<std::int64_t>(1, options.integer("predictions", 0, most_labels));
  LONGHAND_CHECK(chat_template == "none" || !learns_tokens(tokenizer),
                 "task files: option template: the value ", quote(chat_template),
                 " needs a tokenizer file (--tokenizer), got --tokenizer ", tokenizer);
}

bool OwnSettings::counts_tokens() const {
  return !has_template() && (learns_tokens(tokenizer) || tokenizer == "bytes");
}

OwnRecords::OwnRecords(const OwnSettings& settings, const Vocabulary& vocabulary,
                       const ConversationFormat& format)
    : settings_(settings), format_(format), size_(vocabulary.size()), records_(path_of(settings)) {
  if (!settings.has_template()) between_ = vocabulary.encode_part(settings.between);
  const std::string name = path_of(settings).string();
  LONGHAND_CHECK(
      records_.size() > 0, name,
      ": expected one record {\"prompt\": \"...\", \"answer\": \"...\"} per line, got no records");
  end_ = records_.size();
  const auto held_out = static_cast<std::uint64_t>(
      std::ceil(settings.held_out * static_cast<double>(records_.size())));
  if (settings.is_held_out()) begin_ = end_ - held_out;
  if (settings.part == "train") end_ -= held_out;
  LONGHAND_CHECK(begin_ < end_, name, ": expected more than ", records_.size(),
                 " records, because ", held_out, " records are held out (--task.held_out)");
  for (std::uint64_t i = 0; i < count(); ++i) {
    longest_ = std::max(longest_, std::ssize(sample_at(i).tokens));
  }
}

Answer OwnRecords::record(std::uint64_t number) const {
  return Answer::parse(records_.line(begin_ + number), place(number));
}

Sample OwnRecords::sample_at(std::uint64_t number) const {
  LONGHAND_CHECK(number < count(), "expected a record number below ", count(), ", got ", number);
  const std::string place = this->place(number);
  RecordMarks marks;
  const bool has_labels = !settings_.labels.empty();
  Answer record = Answer::parse(records_.line(begin_ + number), place, marks, has_labels);
  if (has_labels) return labelled(record, marks, place);
  if (!settings_.after.empty() && record.answer.ends_with(settings_.after)) {
    record.answer.resize(record.answer.size() - settings_.after.size());
  }
  LONGHAND_CHECK(!record.answer.empty(), place, ": expected a non-empty answer");
  Sample sample;
  sample.tokens = prompt_tokens(record, place);
  const std::vector<std::int32_t> answer =
      encoded(place, [&] { return format_.answer(record.answer); });
  const auto prompt = std::ssize(sample.tokens);
  sample.tokens.insert(sample.tokens.end(), between_.begin(), between_.end());
  const auto begin = std::ssize(sample.tokens);
  LONGHAND_CHECK(begin > 0, place, ": expected a prompt of at least one token, got none");
  const auto length = std::ssize(answer);
  sample.tokens.insert(sample.tokens.end(), answer.begin(), answer.end());
  check_tokens(sample, place);
  sample.targets.assign(sample.tokens.size(), Sample::not_counted);
  const auto score = [&](std::int64_t i) {
    sample.asked.push_back(static_cast<std::int32_t>(begin + i - 1));
    sample.targets[static_cast<std::size_t>(begin + i - 1)] = answer[static_cast<std::size_t>(i)];
  };
  if (marks.scored) {
    for (const std::int32_t i : *marks.scored) {
      LONGHAND_CHECK(i < length, place, ": \"scored\": expected indices below ", length,
                     ", the number of tokens of the answer, got ", i);
      score(i);
    }
  } else {
    for (std::int64_t i = 0; i < length; ++i) score(i);
  }
  sample.stated = rows_of(marks, prompt, begin, std::ssize(sample.tokens), place);
  return sample;
}

std::vector<std::int32_t> OwnRecords::encoded(
    const std::string& place, const std::function<std::vector<std::int32_t>()>& encode) const {
  try {
    return encode();
  } catch (const Error& error) {
    fail(place, ": ", error.what(),
         learns_tokens(settings_.tokenizer) ? "; the vocabulary consists of the tokens of the "
                                              "files at the run's start (task.tokens)"
                                            : "");
  }
}

std::vector<std::int32_t> OwnRecords::prompt_tokens(const Answer& record,
                                                    const std::string& place) const {
  return encoded(place, [&] {
    return format_.prompt(
        std::vector<nn::ChatMessage>{{nn::ChatMessage::Role::user, record.prompt}});
  });
}

void OwnRecords::check_tokens(const Sample& sample, const std::string& place) const {
  const auto length = std::ssize(sample.tokens);
  LONGHAND_CHECK(length > 0, place, ": expected a prompt of at least one token, got none");
  LONGHAND_CHECK(length <= longest_record, place, ": expected at most ", longest_record,
                 " tokens, got ", length);
  LONGHAND_CHECK(std::ranges::max(sample.tokens) < size_, place, ": expected token ids below ",
                 size_, ", got ", std::ranges::max(sample.tokens));
}

Sample OwnRecords::labelled(const Answer& record, const RecordMarks& marks,
                            const std::string& place) const {
  LONGHAND_CHECK(marks.labels, place, ": expected \"labels\", as the first record has, got none");
  Sample sample;
  sample.tokens = prompt_tokens(record, place);
  check_tokens(sample, place);
  const auto length = std::ssize(sample.tokens);
  const std::int64_t groups = settings_.predictions;
  sample.targets.assign(static_cast<std::size_t>(length * groups), Sample::not_counted);
  for (const RecordMarks::Label& label : *marks.labels) {
    LONGHAND_CHECK(label.token < length, place, ": \"labels\": expected token indices below ",
                   length, ", the number of tokens of the prompt, got ", label.token);
    LONGHAND_CHECK(label.group < groups, place, ": \"labels\": expected label numbers below ",
                   groups, ", the number of labels per token, got ", label.group);
    const auto found = settings_.class_of.find(label.text);
    LONGHAND_CHECK(found != settings_.class_of.end(), place, ": \"labels\": ", quote(label.text),
                   " is not among the labels of the files with which the run began (task.labels)");
    const auto output = static_cast<std::int32_t>(label.token * groups + label.group);
    sample.asked.push_back(output);
    sample.targets[static_cast<std::size_t>(output)] = found->second;
  }
  std::map<std::int32_t, std::set<std::int32_t>> rows;
  for (const auto& [i, j] : marks.pairs) {
    LONGHAND_CHECK(i < length, place, ": \"pairs\": expected numbers below ", length,
                   ", the number of tokens of the prompt, got ", i);
    rows[i].insert(j);
  }
  sample.stated = reference_of(rows);
  return sample;
}

std::vector<ReferenceRow> OwnRecords::rows_of(const RecordMarks& marks, std::int64_t prompt,
                                              std::int64_t begin, std::int64_t end,
                                              const std::string& place) const {
  if (marks.pairs.empty()) return {};
  LONGHAND_CHECK(settings_.counts_tokens(), place,
                 ": \"pairs\": expected --tokenizer characters, spaces or bytes, and no chat "
                 "template, got --tokenizer ",
                 settings_.tokenizer, " and the template ", quote(settings_.chat_template));
  const auto token_of = [&](std::int64_t i) {
    return static_cast<std::int32_t>(i < prompt ? i : i - prompt + begin);
  };
  std::map<std::int32_t, std::set<std::int32_t>> rows;
  for (const auto& [i, j] : marks.pairs) {
    LONGHAND_CHECK(token_of(i) < end, place, ": \"pairs\": expected numbers below ",
                   end - (begin - prompt), ", the number of tokens of prompt and answer, got ", i);
    rows[token_of(i) - 1].insert(token_of(j));
  }
  return reference_of(rows);
}

}  // namespace longhand::tasks
