#pragma once

#include <memory>
#include <optional>
#include <string>

#include "nn/ranks/communicator.h"

namespace longhand::nn {

/// True if mpirun or srun started this process, alone or as one of several.
bool ranks_asked_for();

/// Connects the ranks started together with this process. Throws an Error if there is no plug-in,
/// or if the launcher and MPI disagree.
std::unique_ptr<Transport> connect_mpi();

/// Path of the MPI plug-in, if it exists: $LONGHAND_MPI_PLUGIN, next to the program, or
/// ../lib/longhand relative to it.
std::optional<std::string> find_mpi_plugin();

}  // namespace longhand::nn
