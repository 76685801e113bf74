#include "tasks/task_files.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/quote.h"

namespace longhand::tasks {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view ending = ".jsonl";
constexpr std::size_t most_files = 1000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string name_of(const fs::path& path) {
  std::string name = path.filename().string();
  if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  return name;
}

/// Finds the number at the beginning of a text. Returns the length of the number, including its
/// leading zeros, and its digits without them.
std::pair<std::size_t, std::string_view> leading_number(std::string_view text) {
  const std::size_t size =
      static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin());
  const std::string_view digits = text.substr(0, size);
  return {size, digits.substr(std::min(digits.find_first_not_of('0'), digits.size()))};
}

/// True if name a comes before name b. Numbers in names are compared by value, so len-20 precedes
/// len-100.
bool precedes(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const auto one = leading_number(a), other = leading_number(b);
      if (one.second.size() != other.second.size()) return one.second.size() < other.second.size();
      if (one.second != other.second) return one.second < other.second;
      a.remove_prefix(one.first);
      b.remove_prefix(other.first);
      continue;
    }
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return a.size() < b.size();
}

std::vector<TaskFile> files_in(const fs::path& folder) {
  std::vector<TaskFile> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(ending) || name.starts_with('.') || !entry.is_regular_file()) continue;
    files.push_back({name_of(name), folder / name});
    LONGHAND_CHECK(files.size() <= most_files, folder.string(), ": expected at most ", most_files,
                   " *.jsonl files");
  }
  LONGHAND_CHECK(!files.empty(), folder.string(),
                 ": expected *.jsonl files, including train.jsonl, got no *.jsonl file");
  std::ranges::sort(files,
                    [](const TaskFile& a, const TaskFile& b) { return precedes(a.name, b.name); });
  return files;
}

}  // namespace

bool is_task_file_name(std::string_view name) {
  return !name.empty() && name.size() <= 100 && std::ranges::all_of(name, [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.' || c == '+';
  });
}

bool names_task_files(std::string_view word) {
  if (word.empty()) return false;
  std::error_code ignored;
  return word.find_first_of("/,") != std::string_view::npos || word.ends_with(ending) ||
         fs::exists(fs::path(word), ignored);
}

std::vector<TaskFile> parse_task_files(std::string_view list) {
  std::vector<TaskFile> files;
  std::set<std::string> names;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view entry = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    const std::size_t sign = entry.find('=');
    TaskFile file;
    if (sign != std::string_view::npos && is_task_file_name(entry.substr(0, sign))) {
      file = {std::string(entry.substr(0, sign)), fs::path(entry.substr(sign + 1))};
    } else {
      file = {name_of(fs::path(entry)), fs::path(entry)};
    }
    LONGHAND_CHECK(!file.path.empty() && entry.find('\n') == std::string_view::npos,
                   "task files: expected names of files, separated by commas, got ", quote(entry));
    LONGHAND_CHECK(is_task_file_name(file.name),
                   "task files: expected a file name of letters, digits and "
                   "\"-_.+\", or NAME=FILE, got ",
                   quote(entry));
    LONGHAND_CHECK(names.insert(file.name).second,
                   "task files: expected files with different names, got two files with the name ",
                   quote(file.name));
    files.push_back(std::move(file));
    LONGHAND_CHECK(files.size() <= most_files, "task files: expected at most ", most_files,
                   " files");
  }
  return files;
}

std::vector<TaskFile> find_task_files(std::string_view word) {
  const fs::path path(word);
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  LONGHAND_CHECK(word.empty() || word.find_first_of(",=") != std::string_view::npos ||
                     fs::exists(path, ignored),
                 path.string(), ": no such file or folder");
  std::vector<TaskFile> files = is_folder ? files_in(path) : parse_task_files(word);
  LONGHAND_CHECK(
      !files.empty(),
      "task files: expected a folder with train.jsonl (--task FOLDER) or a list of JSONL files");
  for (const TaskFile& file : files) {
    LONGHAND_CHECK(fs::exists(file.path, ignored), file.path.string(), ": no such file or folder");
    LONGHAND_CHECK(file.path.string().find(',') == std::string::npos, file.path.string(),
                   ": expected a path without a comma");
  }
  const auto train = std::ranges::find(files, "train", &TaskFile::name);
  if (train != files.end()) {
    std::rotate(files.begin(), train, train + 1);
  } else {
    LONGHAND_CHECK(files.size() == 1, path.string(),
                   ": expected a file train.jsonl among the files of the task, got ", files.size(),
                   " files with other names");
    files.front().name = "train";
  }
  return parse_task_files(list_of(files));  // throws an Error for names that a list cannot contain
}

std::string list_of(const std::vector<TaskFile>& files) {
  std::string list;
  for (const TaskFile& file : files) {
    list += (list.empty() ? "" : ",") + file.name + "=" + file.path.string();
  }
  return list;
}

}  // namespace longhand::tasks
