#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/run/config.h"
#include "nn/ranks/communicator.h"

namespace longhand::app {

/// Calls `work` on the ranks that mpirun or srun started, or in this process alone. An error that
/// occurs on all ranks is reported once, an error on one rank by that rank. If a rank is lost, the
/// other ranks on its machine end within a second.
void on_ranks(const std::function<void(nn::Communicator&)>& work);

/// Names and values of settings that must be equal on all ranks.
using RankFacts = std::vector<std::pair<std::string, std::string>>;
/// The facts on which bitwise results depend: the program's file and the instruction set.
RankFacts program_facts();
/// Throws an Error that names the first rank and fact that differ from rank 0.
void require_same(nn::Communicator& ranks, const RankFacts& facts);

/// The default number of parts of a step for a run on several ranks: 8, or the largest smaller
/// power of two that divides the number of batches per step.
std::int64_t default_parts(const Config& config);

/// Number of threads of a rank. If --threads is not given, the ranks on a machine share its cores
/// equally.
int threads_of_rank(nn::Communicator& ranks, int threads);

}  // namespace longhand::app
