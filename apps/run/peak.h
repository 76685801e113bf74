#pragma once

#include "core/backend.h"

namespace longhand::app {

/// The current speed of the machine: operations per second of a large product in the backend's math
/// mode, the best of a few runs. 0 on the reference backend, where it is unknown.
double measure_peak(Backend& backend);

}  // namespace longhand::app
