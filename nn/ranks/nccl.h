#pragma once

#include <memory>
#include <optional>
#include <string>

#include "nn/ranks/communicator.h"

namespace longhand::nn {

/// Path of the NCCL plug-in, if it exists: $LONGHAND_NCCL_PLUGIN, next to the program, or
/// ../lib/longhand relative to it.
std::optional<std::string> find_nccl_plugin();

/// Connects the devices of the ranks by NCCL. All ranks call this after creating their backends.
/// Returns null if there is no plug-in; tensors on devices then travel through the host's memory.
std::unique_ptr<DeviceTransport> connect_nccl(Communicator& ranks);

}  // namespace longhand::nn
