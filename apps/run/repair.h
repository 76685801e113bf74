#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "apps/run/config.h"

/// Runs that repair the attention of another run (AttentionSpan, section 6). A repaired run is an
/// ordinary run. It starts from the parameters of the other run, and its config.ini describes the
/// change.
namespace longhand::app {

enum class Repair {
  columns,      // train single columns of every head's W_Q and W_K (section 6.4)
  rope_off,     // omit the rotation of queries and keys (6.5); nothing is trained
  bias_matrix,  // train a matrix that is added to every head's scores (Eq. 6)
  bias_heads,   // train additional heads whose weights are added to the scores (Eq. 7, 8)
  // Selected heads attend more to the reference tokens (section 6.1 of the paper). Nothing is
  // trained.
  reinforce,
};
std::string_view name_of(Repair method);
std::optional<Repair> repair_from_name(std::string_view name);
/// The names of the methods: "columns, rope-off, bias-matrix, bias-heads or reinforce".
std::string repair_names();

/// The configuration of `run`, changed by the method. `task` is the task of the run, or another
/// task with the same vocabulary. Training uses the distribution "ood" unless another one is set.
/// The method `reinforce` is not allowed, because its settings are found by a search
/// (apps/run/reinforcement.h).
Config repaired(const Config& run, Repair method, std::string_view task);

}  // namespace longhand::app
