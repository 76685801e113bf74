#pragma once

#include "core/backend.h"

namespace longhand::app {

/// Measures the present speed of the machine: operations per second of a large matrix product in
/// the backend's math mode, as the best of a few trials. For the reference backend, the speed is
/// unknown and 0 is returned.
double measure_peak(Backend& backend);

}  // namespace longhand::app
