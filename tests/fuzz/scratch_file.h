#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "tests/fuzz/promise.h"

namespace longhand::fuzz {

/// A temporary folder for fuzz targets whose readers require a path. Only this process uses the
/// folder, and each input overwrites the files of the previous one. The folder is in memory
/// (/dev/shm) if the machine has such a file system.
class ScratchFolder {
 public:
  ScratchFolder() {
    const std::filesystem::path memory = "/dev/shm";
    std::error_code error;
    const auto place = std::filesystem::is_directory(memory, error)
                           ? memory
                           : std::filesystem::temp_directory_path();
    std::string name = (place / "longhand-fuzz-XXXXXX").string();
    require(::mkdtemp(name.data()) != nullptr, "there is a folder to write to");
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, std::string_view bytes) const {
    const std::filesystem::path file = path_ / name;
    std::ofstream(file, std::ios::binary).write(bytes.data(), std::ssize(bytes));
    return file;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace longhand::fuzz
