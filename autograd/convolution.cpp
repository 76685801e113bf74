#include "autograd/convolution.h"

#include "autograd/tape.h"
#include "core/contract/convolution.h"
#include "core/error.h"

namespace longhand {

Var short_convolution(const HeadVars& x, const Segments& segments, const Var& weight,
                      const ConvolutionOptions& options) {
  const Tensor y = output_heads(x, x.width).data;
  LONGHAND_CHECK((!options.before && !options.after) || !recorded({&x.data, &weight}),
                 "short_convolution: tokens from a cache have no gradient; run short_convolution "
                 "without a `Recording`");
  y.backend()(ShortConvolution{.x = x.value(),
                               .segments = segments,
                               .weight = weight.value(),
                               .before = options.before,
                               .y = y,
                               .after = options.after});
  return record("short_convolution", {&x.data, &weight}, y,
                [x, segments, weight, sole_reader = options.sole_reader](const Tensor& dy) {
                  dy.backend()(ShortConvolutionBackward{.x = x.value(),
                                                        .segments = segments,
                                                        .weight = weight.value(),
                                                        .dy = dy,
                                                        .dx = targets(x, {}, {}, sole_reader).q,
                                                        .dweight = weight.sink().target()});
                });
}

}  // namespace longhand
