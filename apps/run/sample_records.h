#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "apps/run/config.h"
#include "core/json.h"

namespace longhand::app {

struct RecordCounts {
  // Numbers of samples in the training file, and in each other file.
  std::int64_t train = 0, test = 0;
  bool with_pairs = false;  // true: records contain the reference attention
};
struct WrittenTask {
  // Each written file with its number of samples.
  std::vector<std::pair<std::filesystem::path, std::int64_t>> files;
  std::string flags;  // flags with which `train` obtains the task's samples from the files
};
/// Writes the task of a configuration as files of records {"prompt", "answer"}, without the ends of
/// the answers. If only some tokens of an answer are scored, they are listed in a member "scored".
/// A member "pairs" contains the reference attention (tasks/answers.h), and a member "labels" the
/// labels of tokens. The files are train.jsonl, id.jsonl with other samples of the
/// training distribution, and one file for each other distribution. The test samples are those that
/// `eval` draws with the seed of the configuration. Existing files are not replaced.
WrittenTask write_records(const Config& config, const std::filesystem::path& folder,
                          const RecordCounts& counts);

/// The settings with which split_table() divides a table into the files of a task.
struct TableSplit {
  std::string prompt = "prompt", answer = "answer";  // names of the columns
  bool by_prompt = false;  // true: a row's length is that of its prompt; false: of its answer
  /// Limits of the rows' length in characters, ascending. Rows up to the first limit are in
  /// train.jsonl and id.jsonl, and rows up to each further limit are in a file of their own. With a
  /// single limit, all longer rows are in ood.jsonl. Empty: no limit.
  std::vector<std::int64_t> longest = {};
  double held_out = 0.1;  // share of id.jsonl among the rows up to the first limit
  std::uint64_t seed = 1;
};
struct SplitTable {
  // Each written file with its number of rows.
  std::vector<std::pair<std::filesystem::path, std::int64_t>> files;
  std::int64_t left = 0;  // number of rows that are longer than all limits
};
/// Writes the rows of a CSV or TSV file as train.jsonl, id.jsonl and one file per further limit N,
/// length-N.jsonl. Rows with the same prompt that do not exceed the first limit are in the same
/// file. Existing files are not replaced.
SplitTable split_table(const std::filesystem::path& table, const std::filesystem::path& folder,
                       const TableSplit& split);

}  // namespace longhand::app
