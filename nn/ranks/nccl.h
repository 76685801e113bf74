#pragma once

#include <memory>
#include <optional>
#include <string>

#include "nn/ranks/communicator.h"

namespace longhand::nn {

/// Path of the NCCL plug-in, if it exists: $LONGHAND_NCCL_PLUGIN, or the file in the program's
/// folder or in ../lib/longhand relative to that folder.
std::optional<std::string> find_nccl_plugin();

/// Connects the ranks' devices through NCCL. Every rank must call this function after it has
/// created its backend. Returns null if there is no plug-in. Ranks then exchange tensors on devices
/// through host memory.
std::unique_ptr<DeviceTransport> connect_nccl(Communicator& ranks);

}  // namespace longhand::nn
