#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// A sum of numbers that are all written with the last digit first: 12400+43350+34400=89160. With
/// the option `pad`, all numbers are padded with zeros to one digit more than the longest number.
/// To predict digit i of the sum, a model must attend to digit i of every number.
TaskKind addition();

}  // namespace longhand::tasks
