#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "nn/module.h"
#include "nn/ranks/communicator.h"

namespace longhand::nn {

/// Options of AdamW; see Adam in core/contract/optimizer.h.
struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double decay = 0;            // weight decay of parameters whose decays() is true
  bool decoupled = true;       // false: Adam with weight decay as an L2 penalty
  double clip = 0;             // maximum global norm of the gradients; 0: no clipping
  bool short_moments = false;  // store moments in bf16 if parameters are f32

  friend bool operator==(const AdamOptions&, const AdamOptions&) = default;
};

/// Options of gradient descent with momentum; see Sgd in core/contract/optimizer.h.
struct SgdOptions {
  double momentum = 0.9;
  double decay = 0;
  double clip = 0;
};

/// Options of Muon; see nn/training/muon.h. Muon's own rule updates matrices, and AdamW updates all
/// other parameters.
struct MuonOptions {
  /// The factor that multiplies the update of a matrix. adam: 0.2 sqrt(max(rows, columns)). With
  /// this factor, entries move as far as with AdamW, so that both rules can use one learning rate.
  /// original: sqrt(max(1, rows / columns)).
  enum class Scale { adam, original };

  /// Options of AdamW, which updates all parameters that Muon's own rule does not update. The
  /// options `decay` and `clip` also apply to Muon's own rule.
  AdamOptions adam = {};
  double momentum = 0.95;
  bool nesterov = true;
  std::int64_t steps = 5;  // steps of the Newton-Schulz iteration
  Scale scale = Scale::adam;
  double rate = 1;  // learning rate of matrices, as a multiple of the schedule's learning rate

  friend bool operator==(const MuonOptions&, const MuonOptions&) = default;
};

/// The data that ranks divide among themselves, so that each stores only a part.
enum class Sharing { nothing, moments, gradients };

/// Parameters with their own learning rate or weight decay. A parameter belongs to at most one
/// group.
struct ParameterGroup {
  std::vector<Parameter> parameters;
  double rate = 1;  // factor of the schedule's learning rate
  /// Weight decay of the parameters whose decays() is true; default: the optimizer's weight decay.
  std::optional<double> decay = {};
  bool frozen = false;  // true: the parameters have no gradient and are not updated
  /// True if AdamW, and not Muon's own rule, updates the matrices of this group, for example
  /// embeddings. Optimizers other than Muon ignore this option.
  bool adam = false;
};

/// Updates all parameters that are not frozen, and assigns the proposed values of buffers. A step
/// does not change a parameter that none of its losses uses, such as the output head of another
/// task. If only some rows of a parameter are trained, the other rows are not updated, do not
/// decay, do not count in the norm and have no state.
///
/// If the norm of the gradients or a loss is not finite, this step and all later ones change
/// nothing until go_on() is called. The host may therefore check norm() and the losses several
/// steps later.
///
/// Ranks may share the optimizer's state: each rank owns some parameters, stores their state,
/// updates them, and broadcasts their new values. A parameter has a single owner, and the ranks own
/// roughly equal numbers of entries.
///
/// A new optimizer is a derived class with kind() and apply() (examples/own_optimizer.cpp). This
/// class clips gradients, handles groups, frozen rows and ranks, and saves the state.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual std::string_view kind() const = 0;

  /// Copies the values of this step, such as the rate, to the memory of the backend. Steps count
  /// from 1.
  void prepare(double rate, std::int64_t step);
  /// Executes the prepared step and clears the gradients. The host reads no result. `losses` is a
  /// vector of all losses of the step. If each rank has only the gradients of its own parameters,
  /// `reached` must be given: it contains true for each parameter that has a gradient on any rank.
  void step(const Tensor& losses, const std::vector<bool>* reached = nullptr);
  /// Global norm of the last step's gradients before clipping, a tensor [1].
  const Tensor& norm() const { return norm_; }
  /// Factor by which the last step multiplied the gradients for clipping, a tensor [1].
  const Tensor& factor() const { return factor_; }
  void go_on();

  struct State {
    std::string name;  // name of the parameter with a suffix such as ".m"
    Tensor tensor;
  };
  /// The state to be saved and restored. If ranks share the state, this is only this rank's part.
  std::vector<State> state() const;

  /// The numbers that the optimizer's formula uses in one step, by name. Together with learning(),
  /// they allow other programs to recompute the step.
  using Numbers = std::vector<std::pair<std::string, std::vector<double>>>;
  Numbers numbers(double rate, std::int64_t step) const;
  struct Learning {
    Parameter parameter;
    double rate;  // factor of the schedule's learning rate
    double decay;
  };
  std::vector<Learning> learning() const;

  /// The rank that stores the state of each parameter; 0 for frozen parameters.
  std::vector<int> owners() const;

  /// Makes this rank store the whole state, such as Adam's moments of all parameters, so that the
  /// state can be loaded from a file. Without this call, each rank may store only a part of it.
  void hold_all();
  void hold_own();  // undoes hold_all(): removes the state of other ranks' parameters
  bool holds_all() const;

 protected:
  using Groups = std::span<const ParameterGroup>;
  struct Shared {
    double decay = 0, clip = 0;                // weight decay, and maximum norm of the gradients
    std::vector<std::string_view> state = {};  // suffixes of the state tensors of a parameter
    std::int64_t numbers = 1;                  // size of Update::now
    bool short_state = false;                  // store the state in bf16 if parameters are f32
    /// Returns true for a parameter that has only the first of the state tensors. If the function
    /// is empty, every parameter has all state tensors.
    std::function<bool(const Parameter&, const ParameterGroup*)> has_one_state = {};
  };
  /// If `ranks` is not null, its ranks share the state. Otherwise each rank stores the whole state.
  Optimizer(const Parameters& parameters, Shared shared, Groups groups, Communicator* ranks);

  /// Parameters that are updated together.
  struct Update {
    std::vector<Tensor> parameters = {};  // the parameters that apply() replaces
    std::vector<Tensor> gradients = {};   // before clipping
    // state[k][i] is state tensor k of parameter i; empty if the parameter does not have it.
    std::vector<std::vector<Tensor>> state = {};
    std::vector<double> decay = {};  // weight decay of each parameter
    Tensor now;                      // the values of Optimizer::now()
    /// Factor of the gradients for clipping, [1]. If it is 0, apply() must change nothing.
    Tensor factor;

    /// Sets a parameter or state tensor to `value`. If the member `factor` is 0, the tensor does
    /// not change.
    void assign(const Tensor& to, const Var& value) const;
  };
  /// The values that change from step to step, for step `step` with this rate. They are tensors, so
  /// that recorded steps can be replayed with other values. The default implementation returns only
  /// the learning rate.
  virtual std::vector<double> now(double rate, std::int64_t step) const;
  /// The constants of the optimizer's formula by name, such as Adam's beta1. numbers() returns them
  /// together with the numbers that change from step to step.
  virtual Numbers constants() const { return {}; }
  /// Computes the new values of the parameters and of their state.
  virtual void apply(const Update& update) const = 0;

 private:
  struct Entry {
    Parameter parameter;
    std::size_t number;      // index of the parameter in the model
    std::vector<Rows> rows;  // trained rows
    std::size_t states;      // number of state tensors
    // State tensors of the trained rows; empty on ranks that do not own the parameter.
    std::vector<Tensor> state;
    double decay;
    int owner;
  };
  /// The parameters whose learning rate is `rate` times that of the schedule.
  struct Rated {
    double rate;
    Tensor now;
    std::vector<Entry> entries = {};
  };
  Rated& rated(double rate, Backend& backend, DType type);
  bool owns(const Entry& entry) const { return !ranks_ || entry.owner == ranks_->rank(); }
  std::vector<Tensor> fresh_state(const Entry& entry) const;
  void put_norm(std::span<const Tensor> gradients, std::span<const std::int64_t> sizes,
                const Tensor& losses, bool over_ranks);

  Shared shared_;
  Communicator* ranks_;
  std::size_t parameters_ = 0;  // number of the model's parameters, including frozen ones
  DType kept_;                  // type of the state
  std::vector<Rated> all_;
  std::vector<Buffer> buffers_;
  Tensor norm_, factor_;
};

class AdamOptimizer final : public Optimizer {
 public:
  AdamOptimizer(const Parameters& parameters, const AdamOptions& options, Groups groups = {},
                Communicator* ranks = nullptr);
  std::string_view kind() const override { return "adam"; }
  static void apply(const AdamOptions& options, const Update& update);
  static Numbers constants(const AdamOptions& options);

 private:
  std::vector<double> now(double rate, std::int64_t step) const override;
  Numbers constants() const override;
  void apply(const Update& update) const override;

  AdamOptions options_;
};

class SgdOptimizer final : public Optimizer {
 public:
  SgdOptimizer(const Parameters& parameters, const SgdOptions& options, Groups groups = {},
               Communicator* ranks = nullptr);
  std::string_view kind() const override { return "sgd"; }

 private:
  Numbers constants() const override;
  void apply(const Update& update) const override;

  SgdOptions options_;
};

/// Makes an optimizer of the user's own class.
using OptimizerMaker = std::function<std::unique_ptr<Optimizer>(
    const Parameters& parameters, std::span<const ParameterGroup> groups, Communicator* ranks)>;

using OptimizerOptions = std::variant<AdamOptions, SgdOptions, OptimizerMaker, MuonOptions>;

std::unique_ptr<Optimizer> make_optimizer(const Parameters& parameters,
                                          const OptimizerOptions& options,
                                          std::span<const ParameterGroup> groups = {},
                                          Communicator* ranks = nullptr);

}  // namespace longhand::nn
