#pragma once

#include "core/backend.h"

namespace longhand::app {

/// Operations per second of one large product in the backend's math, the best of a few: the current
/// speed of the machine. 0, unknown, on the reference backend.
double measure_peak(Backend& backend);

}  // namespace longhand::app
