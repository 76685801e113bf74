#pragma once

#include <filesystem>
#include <string>

#include "core/file_descriptor.h"

namespace longhand {

/// The treatment of a symbolic link in the last part of a path.
enum class Links { follow, refuse };

/// Opens a regular file for reading. Throws an Error if the file is missing or is a pipe, device,
/// socket or folder. Does not wait for a pipe.
FileDescriptor open_regular_file(const std::filesystem::path& path);

/// Opens a regular file in a folder; `flags` and `mode` as in open(2). Returns an invalid
/// descriptor if the name does not exist and `flags` lacks O_CREAT. Throws an Error that names
/// `folder_path / name` in all other cases of failure.
FileDescriptor open_regular_file(int folder, const std::filesystem::path& folder_path,
                                 const std::string& name, int flags, unsigned mode, Links links);

}  // namespace longhand
