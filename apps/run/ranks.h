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
/// occurs on all ranks is reported once. An error on one rank is reported by that rank. If a rank
/// is lost, the other ranks on its machine end within a second.
void on_ranks(const std::function<void(nn::Communicator&)>& work);

/// Names and values of settings that must be equal on all ranks.
using RankFacts = std::vector<std::pair<std::string, std::string>>;
/// The facts on which bitwise results depend: the program's file and the instruction set. With
/// Math::portable, results do not depend on the instruction set, so it is left out.
RankFacts program_facts(Math math);
/// Throws an Error if a fact differs from that of rank 0. The Error names the first such rank and
/// fact.
void require_same(nn::Communicator& ranks, const RankFacts& facts);

/// The default number of parts of a step for a run on several ranks. It is 8. If 8 does not divide
/// the number of batches per step, it is the largest smaller power of two that does.
std::int64_t default_parts(const Config& config);

/// Number of threads of a rank. Without --threads, the ranks on a machine share its cores equally.
int threads_of_rank(nn::Communicator& ranks, int threads);

}  // namespace longhand::app
