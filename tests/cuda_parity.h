#pragma once

#include <functional>

#include "core/backend.h"

/// Checks of the CUDA backend, on a device or in the emulator.
namespace longhand::cuda_parity {

using MakeBackend = std::function<std::shared_ptr<Backend>(BackendOptions)>;

enum class Cases { small, all };

/// Checks that every op of the catalog, forward and all gradients, agrees with the reference in
/// each type and math mode. If the environment variable LONGHAND_PARITY_TABLE is set, prints for
/// each op the largest error as a fraction of its bound. LONGHAND_OPERATIONS=WORD limits the check
/// to ops whose names contain the word. `before(turn)` is called before each op is compared in a
/// mode, where turn = index of the op + index of the mode.
void check_operations(const MakeBackend& make, Cases cases,
                      const std::function<void(std::size_t turn)>& before = {});

/// Checks that loss and every gradient of whole models, with all kinds of heads, agree with the
/// reference.
void check_models(const MakeBackend& make);

/// Checks that a short training gives the same bits each time.
void check_training_repeats(const MakeBackend& make);

}  // namespace longhand::cuda_parity
