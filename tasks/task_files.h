#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace longhand::tasks {

/// A JSONL file of a task, and the name of its samples, such as `train` or `len-20`.
struct TaskFile {
  std::string name;
  std::filesystem::path path;
};

/// True if a word can only mean a folder or a list of files: a path, a list, a name that ends in
/// .jsonl, or an existing file or folder.
bool names_task_files(std::string_view word);

/// True if the text can be the name of a file's samples: letters, digits and "-_.+".
bool is_task_file_name(std::string_view name);

/// Finds the files that a user names: a folder with *.jsonl files, one file, or a list with commas
/// in which an entry may be NAME=FILE. The default name is the file's name without .jsonl. The
/// training file comes first: a single file or the one named `train`. The rest of a folder is
/// sorted by name, numbers by value. Throws an Error if there is no training file.
std::vector<TaskFile> find_task_files(std::string_view word);

/// The files as a list that parse_task_files() reads: "train=data/train.jsonl,ood=data/ood.jsonl".
std::string list_of(const std::vector<TaskFile>& files);
/// Parses such a list without looking at the files. Throws an Error if a name is invalid or occurs
/// twice.
std::vector<TaskFile> parse_task_files(std::string_view list);

}  // namespace longhand::tasks
