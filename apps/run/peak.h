#pragma once

#include "core/backend.h"

namespace longhand::app {

/// The present speed of the machine: operations per second of a large product in the backend's math
/// mode, the best of a few runs. For the reference backend, the speed is unknown and 0 is returned.
double measure_peak(Backend& backend);

}  // namespace longhand::app
