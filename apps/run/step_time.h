#pragma once

#include "apps/run/config.h"

namespace longhand::app {

/// Mean time in seconds of a training step with these settings. Trains a model for about `seconds`
/// seconds, but at least three steps, and discards the model. The first step is not counted,
/// because it also allocates memory.
double seconds_per_step(const Config& config, double seconds);

}  // namespace longhand::app
