#pragma once

#include <cstdint>
#include <vector>

#include "autograd/variable.h"

namespace longhand::app {

/// Attention rollout (Abnar and Zuidema 2020) of a sequence, for the rows [first, first + rows):
///   R = B_L ... B_1,  B_l = D_l^-1 (A_l + I)
/// with A_l the mean of layer l's heads and D_l the row sums of A_l + I. R_ij is the share of token
/// j in what token i contains after the last layer, if only attention moved information.
///
/// Layers are added from the last to the first, so R has no more rows than needed, and a new layer
/// is one product R <- R B_l. No token sees a later one, so R is stored as panels of columns that
/// start at the diagonal. Computed in f32 for f32, with sums in a fixed order.
class Rollout {
 public:
  Rollout(Backend& backend, DType type, std::int64_t tokens, std::int64_t first, std::int64_t rows,
          std::int64_t panel_columns = 512);

  /// `attention` is the mean of a layer's heads, [tokens, tokens], zero above the diagonal.
  void add_earlier_layer(const Tensor& attention);
  /// [rows, tokens]
  Tensor matrix() const;

 private:
  /// Columns [begin, end) of the rows from `row` on; earlier rows see none of them.
  struct Panel {
    std::int64_t begin, end, row;
    Var entries;
  };

  std::int64_t tokens_, first_, rows_;
  std::vector<Panel> panels_;
};

}  // namespace longhand::app
