#pragma once

#include <cstdint>
#include <vector>

#include "autograd/variable.h"

namespace longhand::app {

/// The attention rollout (Abnar and Zuidema 2020) of a sequence, for the rows [first, first +
/// rows):
///   R = B_L ... B_1,  B_l = D_l^-1 (A_l + I)
/// where A_l is the mean over layer l's heads and D_l contains the row sums of A_l + I. If
/// attention were the only flow of information, R_ij would be the share of token j in token i after
/// the last layer.
///
/// Layers are added from the last to the first, so that R has no more rows than needed; adding a
/// layer is one product R <- R B_l. Because attention is causal, R is stored as column panels that
/// start at the diagonal. For f32, R is computed in f32 with sums in a fixed order.
class Rollout {
 public:
  Rollout(Backend& backend, DType type, std::int64_t tokens, std::int64_t first, std::int64_t rows,
          std::int64_t panel_columns = 512);

  /// Adds the layer that precedes those added so far. `attention` is the mean over the layer's
  /// heads, [tokens, tokens], and zero above the diagonal.
  void add_earlier_layer(const Tensor& attention);
  /// The rollout R, [rows, tokens].
  Tensor matrix() const;

 private:
  /// The columns [begin, end) of the rollout R, in its rows from `row` on. In the rows before
  /// `row`, these columns are zero.
  struct Panel {
    std::int64_t begin, end, row;
    Var entries;
  };

  std::int64_t tokens_, first_, rows_;
  std::vector<Panel> panels_;
};

}  // namespace longhand::app
