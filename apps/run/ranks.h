#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/run/config.h"
#include "nn/ranks/communicator.h"

namespace longhand::app {

/// Does work on the ranks that mpirun or srun started, or alone. An error that all ranks have is
/// told once; one of a single rank is told by it, and with a rank that is gone the others end:
/// within a second on its machine.
void on_ranks(const std::function<void(nn::Communicator&)>& work);

/// What has to be the same on all ranks: names and values.
using RankFacts = std::vector<std::pair<std::string, std::string>>;
/// The program and what its bits depend on: its file, the instruction set.
RankFacts program_facts();
/// An Error, naming the rank and the first fact, where one of another rank is not rank 0's.
void require_same(nn::Communicator& ranks, const RankFacts& facts);

/// The parts of a step of a run that begins on ranks and does not say: 8, or as many as divide its
/// batches.
std::int64_t default_parts(const Config& config);

/// Threads for each rank where they share a machine and nobody says: an equal share of its cores.
int threads_of_rank(nn::Communicator& ranks, int threads);

}  // namespace longhand::app
