#pragma once

#include "core/backend.h"

namespace longhand::app {

/// Operations a second of one large product in the backend's math, the best of a few: what the
/// machine gives at this moment. 0, unknown, on the reference backend.
double measure_peak(Backend& backend);

}  // namespace longhand::app
