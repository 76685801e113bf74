#pragma once

namespace longhand::cpu {

/// How a kernel writes its results.
struct Store {
  bool add = false;     // to what is there
  bool stream = false;  // past the caches; every row, or every chunk, starts on a 64-byte boundary
};

}  // namespace longhand::cpu
