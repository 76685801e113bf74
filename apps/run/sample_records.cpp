#include "apps/run/sample_records.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "core/atomic_file.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "core/quote.h"
#include "core/table_file.h"
#include "core/utf8.h"

namespace longhand::app {
namespace {

namespace fs = std::filesystem;

/// The unit in which a record numbers the tokens of its text: characters, the words that the task's
/// separator divides, or the words between spaces. The text of a token may be only a part of a word
/// between spaces.
enum class Unit { character, token, word };

/// The unit is the word between spaces only if the records contain pairs, and if a token of the
/// task has several characters.
Unit unit_of(const tasks::Vocabulary& vocabulary, bool with_pairs) {
  if (!vocabulary.separator().empty()) return Unit::token;
  for (std::int32_t token = 0; with_pairs && token < vocabulary.size(); ++token) {
    if (count_code_points(vocabulary.text(token)) != 1) return Unit::word;
  }
  return Unit::character;
}

/// Returns the index of the word, between spaces, in which each token of a text begins, followed by
/// the number of words.
std::vector<std::int32_t> word_places(const tasks::Vocabulary& vocabulary,
                                      std::span<const std::int32_t> tokens) {
  std::vector<std::int32_t> places;
  std::int32_t words = 0;
  bool in_word = false;
  for (const std::int32_t token : tokens) {
    std::optional<std::int32_t> place;
    for (const char c : vocabulary.text(token)) {
      if (c != ' ' && !in_word) ++words;
      in_word = c != ' ';
      if (in_word && !place) place = words - 1;
    }
    places.push_back(place.value_or(words));
  }
  places.push_back(words);
  return places;
}

/// Returns the index of the unit with which each token of a sample begins, followed by the number
/// of units.
std::vector<std::int32_t> places_of(const tasks::Vocabulary& vocabulary,
                                    std::span<const std::int32_t> tokens, Unit unit) {
  if (unit == Unit::word) return word_places(vocabulary, tokens);
  std::vector<std::int32_t> places{0};
  for (const std::int32_t token : tokens) {
    const std::size_t size = unit == Unit::token ? 1 : count_code_points(vocabulary.text(token));
    places.push_back(places.back() + static_cast<std::int32_t>(size));
  }
  return places;
}

/// The reference attention as pairs [i, j]: the prediction for unit i should attend to unit j.
/// `places` contains the unit of each token. A prediction is made `ahead` tokens before its token.
Json pairs_of(const tasks::Task& task, const tasks::Sample& sample, std::int32_t ahead,
              std::span<const std::int32_t> places) {
  const auto place = [&](std::int32_t token) { return places[static_cast<std::size_t>(token)]; };
  Json pairs = Json::array();
  std::set<std::pair<std::int32_t, std::int32_t>> found;
  for (const tasks::ReferenceRow& row : task.reference(sample)) {
    for (const std::int32_t column : row.columns) {
      const std::pair pair(place(row.row + ahead), place(column));
      if (!found.insert(pair).second) continue;
      pairs.push_back(std::vector<std::int32_t>{pair.first, pair.second});
    }
  }
  return pairs;
}

/// A sample whose tokens have labels, as a record with the members "labels" and "pairs".
Json labelled_record(const tasks::Task& task, const tasks::Sample& sample, bool with_pairs) {
  auto [prompt, answer] = task.as_text(sample);
  LONGHAND_CHECK(
      !task.vocabulary().separator().empty() && task.vocabulary().decode(sample.tokens) == prompt,
      "expected a task whose prompts are words with spaces between them");
  Json line{{"prompt", std::move(prompt)}, {"answer", std::move(answer)}};
  const auto groups = static_cast<std::int32_t>(task.outputs().groups);
  Json labels = Json::array();
  for (const std::int32_t output : sample.asked) {
    Json label = Json::array();
    label.push_back(output / groups);
    if (groups > 1) label.push_back(output % groups);
    label.push_back(std::to_string(sample.targets[static_cast<std::size_t>(output)]));
    labels.push_back(std::move(label));
  }
  line["labels"] = std::move(labels);
  if (with_pairs) {
    line["pairs"] =
        pairs_of(task, sample, 0, places_of(task.vocabulary(), sample.tokens, Unit::token));
  }
  return line;
}

bool is_ended(const tasks::Task& task, const tasks::Sample& sample) {
  return task.as_text(sample).second.ends_with('\n');
}

/// Converts a sample to a record {"prompt", "answer"} of the task `files`. A line break at the end
/// of the answer is omitted. If only some tokens of the answer are scored, they are listed in a
/// member "scored". With `with_pairs`, a member "pairs" contains the reference attention
/// (tasks/answers.h). If the task predicts labels of tokens, a member "labels" contains them.
/// Throws an Error if nothing is scored, or if the pairs cannot be expressed.
Json record_of(const tasks::Task& task, const tasks::Sample& sample, bool with_pairs, Unit unit) {
  LONGHAND_CHECK(!sample.asked.empty(),
                 "expected a sample with scored tokens, got a sample without scored tokens");
  if (!task.outputs().says_next) return labelled_record(task, sample, with_pairs);
  auto [prompt, answer] = task.as_text(sample);
  const bool is_joined = task.vocabulary().decode(sample.tokens) == prompt + answer;
  if (is_joined) {
    // Some tasks put scored tokens into the prompt. The prompt of a record ends before these
    // tokens.
    const auto given = static_cast<std::size_t>(sample.asked.front()) + 1;
    const std::string whole = prompt + answer;
    prompt = task.vocabulary().decode(std::span(sample.tokens).first(given));
    answer = whole.substr(prompt.size());
  }
  const std::string separator(is_joined ? task.vocabulary().separator() : "");
  if (!separator.empty() && answer.starts_with(separator)) answer.erase(0, separator.size());
  if (answer.ends_with('\n')) {
    answer.pop_back();
    if (!separator.empty() && answer.ends_with(separator)) {
      answer.resize(answer.size() - separator.size());
    }
  }
  Json line{{"prompt", std::move(prompt)}, {"answer", std::move(answer)}};
  LONGHAND_CHECK(is_joined || !with_pairs,
                 "--mask needs a task whose tokens encode only prompt and answer, got a task "
                 "with a chat template");
  if (!is_joined) return line;
  const std::vector<std::int32_t> places = places_of(task.vocabulary(), sample.tokens, unit);
  const auto place = [&](std::int64_t token) { return places[static_cast<std::size_t>(token)]; };
  const std::int32_t begin = place(sample.asked.front() + 1);
  std::vector<std::int32_t> scored;
  for (const std::int32_t output : sample.asked) {
    for (std::int32_t at = place(output + 1); at < place(output + 2); ++at) {
      scored.push_back(at - begin);
    }
  }
  if (std::ssize(scored) < places.back() - begin) line["scored"] = scored;
  if (!with_pairs) return line;
  LONGHAND_CHECK(unit != Unit::word || begin > place(sample.asked.front()),
                 "--mask needs a task whose answers begin with a new word, got the answer ",
                 quote(line["answer"].string()));
  line["pairs"] = pairs_of(task, sample, 1, places);
  return line;
}

}  // namespace

SplitTable split_table(const fs::path& table, const fs::path& folder, const TableSplit& split) {
  TableFile rows(table);
  const std::size_t prompt = rows.column(split.prompt), answer = rows.column(split.answer);
  const std::size_t measured = split.by_prompt ? prompt : answer;
  const Folder made = Folder::make(folder);
  struct Part {
    std::string name;
    std::unique_ptr<AtomicFile> file = {};  // null while there is no row
    std::int64_t rows = 0;
  };
  std::vector<Part> parts;
  parts.push_back({"train.jsonl"});
  parts.push_back({"id.jsonl"});
  for (std::size_t i = 1; i < split.longest.size(); ++i) {
    parts.push_back({text("length-", split.longest[i], ".jsonl")});
  }
  if (split.longest.size() == 1) parts.push_back({"ood.jsonl"});
  for (const Part& part : parts) {
    LONGHAND_CHECK(!made.contains(part.name), (folder / part.name).string(), ": already exists");
  }
  SplitTable result;
  while (const auto row = rows.next()) {
    LONGHAND_CHECK(!(*row)[answer].empty(), rows.place(),
                   ": expected an answer, got an empty cell");
    const auto length = static_cast<std::int64_t>(count_code_points((*row)[measured]));
    // Number of limits that are below the row's length.
    const auto above = static_cast<std::size_t>(std::ranges::lower_bound(split.longest, length) -
                                                split.longest.begin());
    std::size_t part = above + 1;
    if (above == 0) {
      Rng rng(split.seed, Purpose::split, 0, crc32c((*row)[prompt]));
      part = rng.chance(split.held_out) ? 1 : 0;
    }
    if (part >= parts.size()) {
      ++result.left;
      continue;
    }
    Part& chosen = parts[part];
    if (!chosen.file) chosen.file = std::make_unique<AtomicFile>(made, chosen.name);
    const Json line{{"prompt", (*row)[prompt]}, {"answer", (*row)[answer]}};
    chosen.file->write(line.dump() + "\n");
    ++chosen.rows;
  }
  LONGHAND_CHECK(
      parts.front().rows > 0, table.string(), ": expected at least one row for training, got none",
      split.longest.empty()
          ? ""
          : "; the first number of --lengths is the maximum length of rows for training");
  for (const Part& part : parts) {
    if (!part.file) continue;
    part.file->commit();
    result.files.emplace_back(folder / part.name, part.rows);
  }
  return result;
}

WrittenTask write_records(const Config& config, const fs::path& folder,
                          const RecordCounts& counts) {
  // Reports options that do not fit one of the distributions before a file is written.
  for (const tasks::Distribution& d : config.distributions()) config.task(d.name);
  const Folder made = Folder::make(folder);
  const std::uint64_t seed = config.training().seed;
  WrittenTask written;
  const Unit unit = unit_of(config.task()->vocabulary(), counts.with_pairs);
  std::set<std::string> last;  // last words or characters of the training prompts
  bool ends = true;
  const auto write = [&](const std::string& name, const std::string& distribution,
                         std::int64_t count, Purpose purpose, std::uint64_t stream) {
    const auto task = config.task(distribution);
    LONGHAND_CHECK(task->count() == 0, "--out needs a task that draws samples, got the task ",
                   config.kind().name, ", which reads them from files");
    const std::string file = name + ".jsonl";
    LONGHAND_CHECK(!made.contains(file), (folder / file).string(), ": already exists");
    AtomicFile out(made, file);
    std::int64_t lines = 0;
    for (std::uint32_t i = 0; lines < count; ++i) {
      LONGHAND_CHECK(i < 1000 || lines > 0, "task ", config.kind().name,
                     ": expected samples with scored tokens, got none");
      Rng rng(seed, purpose, stream, i);
      const tasks::Sample sample = task->sample(rng, 0);
      if (sample.asked.empty()) continue;
      const Json record = record_of(*task, sample, counts.with_pairs, unit);
      out.write(record.dump() + "\n");
      ++lines;
      ends = ends && is_ended(*task, sample);
      const std::string& prompt = record["prompt"].string();
      last.insert(prompt.empty() ? "" : prompt.substr(prompt.size() - 1));
    }
    out.commit();
    written.files.emplace_back(folder / file, lines);
  };
  const std::vector<tasks::Distribution> all = config.distributions();
  write("train", all.front().name, counts.train, Purpose::data, 1);
  write("id", all.front().name, counts.test, Purpose::evaluation, 0);
  for (std::size_t i = 1; i < all.size(); ++i) {
    write(all[i].name, all[i].name, counts.test, Purpose::evaluation, 0);
  }
  const auto task = config.task();
  if (unit != Unit::character) written.flags += " --tokenizer spaces";
  // By default, the task `files` adds a mark after prompts that do not all end with the same token,
  // and a line break after every answer. The flags turn this off if the samples contain no such
  // text. Records with labels need no flags, because the task adds nothing to them.
  if (task->outputs().says_next && last.size() > 1) written.flags += " --task.between none";
  if (task->outputs().says_next && !ends) written.flags += " --task.after none";
  return written;
}

}  // namespace longhand::app
