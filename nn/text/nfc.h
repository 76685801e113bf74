#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace longhand::nn {

/// A rewritten part of a text: the bytes [begin, end) of the result replace the bytes
/// [original_begin, original_end) of the original.
struct Rewritten {
  std::size_t begin, end, original_begin, original_end;
};

/// Converts a text to Unicode's normalization form C (Unicode 9.0; code points assigned later are
/// not changed). Each base character with its marks is decomposed, the marks are sorted by
/// combining class, and all possible compositions are made. Almost all texts already have this
/// form; `text` itself is then returned. Otherwise the result is in `buffer`. Unless null,
/// `changes` is cleared and receives the rewritten parts in order.
std::string_view to_nfc(std::string_view text, std::string& buffer,
                        std::vector<Rewritten>* changes);

}  // namespace longhand::nn
