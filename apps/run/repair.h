#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "apps/run/config.h"

/// Runs that repair another's attention (Attention Span, section 6). A repaired run is a run like
/// any other: it begins with the other's weights, and its config.ini says what was changed.
namespace longhand::app {

enum class Repair {
  columns,      // single columns of every head's W_Q and W_K learn (6.4)
  rope_off,     // queries and keys do not turn (6.5); nothing learns
  bias_matrix,  // a matrix added to every head's scores learns (Eq. 6)
  bias_heads,   // further heads whose weights are added to the scores learn (Eq. 7, 8)
  reinforce,    // chosen heads look more at the task's reference (6.1); nothing learns
};
std::string_view name_of(Repair method);
std::optional<Repair> repair_from_name(std::string_view name);
/// "columns, rope-off, bias-matrix, bias-heads or reinforce"
std::string repair_names();

/// The model of `run` changed by the method, under its task or another of its vocabulary. What
/// learns does so on the distribution "ood" unless something else is set. Not for reinforcement,
/// whose settings are searched for (apps/run/reinforcement.h).
Config repaired(const Config& run, Repair method, std::string_view task);

}  // namespace longhand::app
