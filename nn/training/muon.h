#pragma once

#include "nn/training/optimizer.h"

namespace longhand::nn {

/// The polynomial a x + b x^3 + c x^5 that the Newton-Schulz iteration applies to singular values.
struct NewtonSchulz {
  static constexpr double a = 3.4445, b = -4.775, c = 2.0315, smallest_norm = 1e-7;
};
/// Returns the matrix x with its singular values replaced by numbers near 1 (docs/math/muon.md):
///   x = x / max(|x|, 1e-7), with the Frobenius norm |x|; then, `steps` times,
///   x = a x + (b p + c p^2) x, with p = x x^T.
/// If x has more rows than columns, the last formula is replaced by this one with a smaller p:
///   x = a x + x (b p + c p^2), with p = x^T x.
Var orthogonalized(const Var& x, std::int64_t steps);

/// Muon (Jordan et al. 2024), with the formula of PyTorch's torch.optim.Muon. For a matrix w with
/// gradient g (after clipping) and momentum m,
///   m = momentum m + g;  d = g + momentum m, or m without Nesterov's rule;
///   w = w (1 - rate decay) - rate scale orthogonalized(d).
/// The scale depends on the matrix's shape (MuonOptions::Scale). AdamW updates vectors, tensors of
/// higher rank, matrices of which only some rows are trained, and groups with `adam`.
class MuonOptimizer final : public Optimizer {
 public:
  MuonOptimizer(const Parameters& parameters, const MuonOptions& options, Groups groups = {},
                Communicator* ranks = nullptr);
  std::string_view kind() const override { return "muon"; }
  /// The factor that multiplies the update of a matrix with this shape.
  static double scale_of(MuonOptions::Scale scale, const Shape& shape);

 private:
  std::vector<double> now(double rate, std::int64_t step) const override;
  Numbers constants() const override;
  void apply(const Update& update) const override;
  void update_matrix(const Update& update, std::size_t i) const;

  MuonOptions options_;
};

}  // namespace longhand::nn
