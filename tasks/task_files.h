#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace longhand::tasks {

/// A JSONL file with the samples of one distribution of a task. `name` is the name of the
/// distribution, such as `train` or `len-20`.
struct TaskFile {
  std::string name;
  std::filesystem::path path;
};

/// True if a word can only mean a folder or a list of files: it is a path, a list, a name that ends
/// in .jsonl, or the name of an existing file or folder.
bool names_task_files(std::string_view word);

/// True if a text is valid as TaskFile::name: 1 to 100 letters, digits and characters of "-_.+".
bool is_task_file_name(std::string_view name);

/// Finds the files that a user names: a folder with *.jsonl files, one file, or a list with commas,
/// whose entries may have the form NAME=FILE. TaskFile::name is NAME or, by default, the name of
/// the file without .jsonl. The training file comes first in the result. It is the only file or the
/// one whose TaskFile::name is `train`. The other files of a folder are sorted by TaskFile::name,
/// and numbers in names are compared by value. Throws an Error if there is no training file.
std::vector<TaskFile> find_task_files(std::string_view word);

/// The files as a list that parse_task_files() reads: "train=data/train.jsonl,ood=data/ood.jsonl".
std::string list_of(const std::vector<TaskFile>& files);
/// Parses a list of files, such as the result of list_of(). Does not look at the files. Throws an
/// Error if a name is invalid or occurs twice.
std::vector<TaskFile> parse_task_files(std::string_view list);

}  // namespace longhand::tasks
