#include "core/contract/convolution.h"

#include "core/reference/heads.h"
#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {

void run(ReferenceBackend&, const ShortConvolution& op) {
  const HeadRows x(op.x);
  const Rows weight(op.weight), before(op.before);
  const Result y(op.y), after(op.after);
  const std::int64_t n = op.x.heads * op.x.width, taps = op.weight.rows();

  std::int64_t number = 0;
  for (const Sequence& s : sequences(op.segments, op.segments)) {
    for (std::int64_t c = 0; c < n; ++c) {
      // Returns x of token t of the sequence. Tokens with t < 0 precede the sequence. The input
      // `before` contains the last taps - 1 of these tokens. If `before` is empty, their x is 0.
      const auto at = [&](std::int64_t t) {
        if (t >= 0) return x(s.key + t, c / op.x.width, c % op.x.width);
        return op.before ? before(number, (taps - 1 + t) * n + c) : 0.0;
      };
      for (std::int64_t t = 0; t < s.keys; ++t) {
        double sum = 0;
        for (std::int64_t i = 0; i < taps; ++i) sum += weight(i, c) * at(t - i);
        y.put(s.key + t, c, sum);
      }
      // The tensors `before` and `after` may be the same. Entry i of `after` is copied from entry
      // i + s.keys of `before`, or from x. Since i ascends, no unread entry is overwritten.
      for (std::int64_t i = 0; i < taps - 1; ++i) {
        after.put(number, i * n + c, at(s.keys - (taps - 1) + i));
      }
    }
    ++number;
  }
}

void run(ReferenceBackend&, const ShortConvolutionBackward& op) {
  const HeadRows x(op.x);
  const Rows weight(op.weight), dy(op.dy);
  const HeadResult dx(op.dx);
  const std::int64_t n = op.x.heads * op.x.width, taps = op.weight.rows();

  std::vector<double> dweight(static_cast<std::size_t>(taps * n), 0.0);
  for (const Sequence& s : sequences(op.segments, op.segments)) {
    for (std::int64_t c = 0; c < n; ++c) {
      const std::int64_t head = c / op.x.width, entry = c % op.x.width;
      for (std::int64_t t = 0; t < s.keys; ++t) {
        double sum = 0;
        for (std::int64_t i = 0; i < taps; ++i) {
          if (t + i < s.keys) sum += weight(i, c) * dy(s.key + t + i, c);
          if (t - i >= 0) dweight[i * n + c] += dy(s.key + t, c) * x(s.key + t - i, head, entry);
        }
        dx.put(s.key + t, head, entry, sum);
      }
    }
  }
  for (std::size_t i = 0; i < dweight.size(); ++i) {
    Result(op.dweight).put(static_cast<std::int64_t>(i), dweight[i]);
  }
}

}  // namespace longhand::reference
