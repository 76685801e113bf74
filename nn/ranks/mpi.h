#pragma once

#include <memory>
#include <optional>
#include <string>

#include "nn/ranks/communicator.h"

namespace longhand::nn {

/// Whether mpirun or srun started this process as one of several, or as the only one.
bool ranks_asked_for();

/// The ranks that were started together with this process. An Error where there is no plug-in, or
/// the launcher and MPI do not agree.
std::unique_ptr<Transport> connect_mpi();

/// The plug-in's file, where there is one: $LONGHAND_MPI_PLUGIN, next to the program, or
/// ../lib/longhand from there.
std::optional<std::string> find_mpi_plugin();

}  // namespace longhand::nn
