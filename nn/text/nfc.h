#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace longhand::nn {

/// A rewritten part of a text: bytes [begin, end) of the result replace bytes [original_begin,
/// original_end).
struct Rewritten {
  std::size_t begin, end, original_begin, original_end;
};

/// The text in Unicode's normalization form C (of Unicode 9.0: what was assigned later stays as it
/// is): each sequence of a base and marks is decomposed, its marks are sorted by combining class,
/// and what can be combined is. A text that is in the form already, as nearly all are, is
/// returned itself; otherwise the result lies in `buffer`. `changes`, cleared first,
/// tells which parts were rewritten, in order, unless it is null.
std::string_view to_nfc(std::string_view text, std::string& buffer,
                        std::vector<Rewritten>* changes);

}  // namespace longhand::nn
