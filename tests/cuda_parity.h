#pragma once

#include <functional>

#include "core/backend.h"

/// Checks of the CUDA backend, on a device or in the emulator.
namespace longhand::cuda_parity {

using MakeBackend = std::function<std::shared_ptr<Backend>(BackendOptions)>;

enum class Cases { small, all };

/// Every op of the catalog, forward and all gradients, in each type and math mode, agrees with the
/// reference. In the environment, LONGHAND_PARITY_TABLE prints what share of its bound each used,
/// and LONGHAND_OPERATIONS=WORD limits the check to operations whose names contain the word.
void check_operations(const MakeBackend& make, Cases cases);

/// Checks that loss and every gradient of whole models, with all kinds of heads, agree with the
/// reference.
void check_models(const MakeBackend& make);

/// Checks that a short training gives the same bits each time.
void check_training_repeats(const MakeBackend& make);

}  // namespace longhand::cuda_parity
