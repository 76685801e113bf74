#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "apps/run/config.h"
#include "core/json.h"

namespace longhand::app {

/// Writes a sample as a record {"prompt", "answer"} of the task `files`, without the end of the
/// answer. If only some tokens of the answer are scored, the record has a member "scored"; with
/// `with_pairs`, the reference attention is its member "pairs" (tasks/answers.h). Throws an Error
/// if nothing is scored, or if pairs cannot be expressed.
Json record_of(const tasks::Task& task, const tasks::Sample& sample, bool with_pairs);

struct RecordCounts {
  std::int64_t train = 0, test = 0;  // samples of the training file, and of each other file
  bool with_pairs = false;
};
struct WrittenTask {
  std::vector<std::pair<std::filesystem::path, std::int64_t>> files;  // with numbers of samples
  std::string flags;  // flags of `train` with which the files give the samples of the task
};
/// Writes the task of a configuration as files: train.jsonl, id.jsonl with other samples of the
/// training distribution, and a file for each other distribution. The test samples are those that
/// `eval` draws with the seed of the configuration. Existing files are not replaced.
WrittenTask write_records(const Config& config, const std::filesystem::path& folder,
                          const RecordCounts& counts);

/// The settings with which split_table() divides a table into the files of a task.
struct TableSplit {
  std::string prompt = "prompt", answer = "answer";  // names of the columns
  bool by_prompt = false;  // true: a row's length is that of its prompt; false: of its answer
  /// Maximum length in characters of the rows in train.jsonl and id.jsonl, then of those in each
  /// further file, ascending. Empty: no limit. If there is one number, longer rows are in
  /// ood.jsonl.
  std::vector<std::int64_t> longest = {};
  double held_out = 0.1;  // share of the short rows that is in id.jsonl
  std::uint64_t seed = 1;
};
struct SplitTable {
  std::vector<std::pair<std::filesystem::path, std::int64_t>> files;  // with numbers of rows
  std::int64_t left = 0;                                              // rows longer than all limits
};
/// Writes the rows of a CSV or TSV file as train.jsonl, id.jsonl and a file len-N.jsonl for each
/// further limit. Rows with the same prompt are in the same file. Existing files are not replaced.
SplitTable split_table(const std::filesystem::path& table, const std::filesystem::path& folder,
                       const TableSplit& split);

}  // namespace longhand::app
