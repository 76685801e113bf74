#pragma once

namespace longhand::cpu {

/// The way in which a kernel writes its results.
struct Store {
  bool add = false;  // add to the existing contents
  // write past the caches; requires every row, or every chunk, to start on a 64-byte boundary
  bool stream = false;
};

}  // namespace longhand::cpu
