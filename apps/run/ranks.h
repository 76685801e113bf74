#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/run/config.h"
#include "nn/ranks/communicator.h"

namespace longhand::app {

/// Does work on the ranks that mpirun or srun started, or on this process alone. An error common to
/// all ranks is reported once, one of a single rank by that rank. If a rank is lost, the others on
/// its machine end within a second.
void on_ranks(const std::function<void(nn::Communicator&)>& work);

/// Names and values that must be equal on all ranks.
using RankFacts = std::vector<std::pair<std::string, std::string>>;
/// The facts on which the bits depend: the program's file and the instruction set.
RankFacts program_facts();
/// Throws an Error that names the rank and the first fact that differs from rank 0's.
void require_same(nn::Communicator& ranks, const RankFacts& facts);

/// The default number of parts of a step for a run that starts on ranks: 8, or the largest smaller
/// power of two that divides its batches.
std::int64_t default_parts(const Config& config);

/// Threads per rank if ranks share a machine and --threads is not given: an equal share of its
/// cores.
int threads_of_rank(nn::Communicator& ranks, int threads);

}  // namespace longhand::app
