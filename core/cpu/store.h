#pragma once

namespace longhand::cpu {

/// How a kernel writes its results.
struct Store {
  bool add = false;  // add to the existing contents instead of overwriting them
  // Use non-temporal stores. This requires that every row, or every chunk, starts on a 64-byte
  // boundary.
  bool stream = false;
};

}  // namespace longhand::cpu
