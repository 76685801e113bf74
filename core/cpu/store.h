#pragma once

namespace longhand::cpu {

/// How a kernel writes its results.
struct Store {
  // True if results are added to the contents of the destination instead of overwriting them.
  bool add = false;
  // True if non-temporal stores are used. Then every row or chunk of rows that a kernel writes at
  // once must start on a 64-byte boundary.
  bool stream = false;
};

}  // namespace longhand::cpu
