#pragma once

#include <filesystem>
#include <string>

#include "core/file_descriptor.h"

namespace longhand {

/// Whether a name that is a symbolic link is followed or refused. Only its last part is meant.
enum class Links { follow, refuse };

/// Opens a regular file for reading. A pipe, device, socket or folder of that name is an Error that
/// says so, and no pipe is waited for. A missing file is an Error, too.
FileDescriptor open_regular_file(const std::filesystem::path& path);

/// Opens a regular file of a folder: `flags` and `mode` as in open(2). The descriptor is not valid
/// if nothing has the name and O_CREAT is not among the flags; whatever else fails is an Error that
/// names `folder_path / name`.
FileDescriptor open_regular_file(int folder, const std::filesystem::path& folder_path,
                                 const std::string& name, int flags, unsigned mode, Links links);

}  // namespace longhand
