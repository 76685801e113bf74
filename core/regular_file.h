#pragma once

#include <filesystem>
#include <string>

#include "core/file_descriptor.h"

namespace longhand {

/// What to do if the last component of a path is a symbolic link.
enum class Links { follow, refuse };

/// Opens a regular file for reading. Throws an Error if the file is missing or is a pipe, device,
/// socket or folder. Does not wait if the file is a pipe.
FileDescriptor open_regular_file(const std::filesystem::path& path);

/// Opens a regular file in a folder. `flags` and `mode` are those of open(2). If the name does not
/// exist and `flags` does not contain O_CREAT, the result is invalid. Any other failure throws an
/// Error that names `folder_path / name`.
FileDescriptor open_regular_file(int folder, const std::filesystem::path& folder_path,
                                 const std::string& name, int flags, unsigned mode, Links links);

}  // namespace longhand
