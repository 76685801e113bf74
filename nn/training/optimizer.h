#pragma once

#include <cstdint>
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

/// AdamW: see Adam in core/contract/optimizer.h.
struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double decay = 0;            // of the parameters that decay (Parameter::decays)
  bool decoupled = true;       // false: Adam, decay as an L2 penalty
  double clip = 0;             // largest global norm of the gradients; 0: no clipping
  bool short_moments = false;  // bf16 beside f32 parameters
};

/// Gradient descent with momentum: see Sgd in core/contract/optimizer.h.
struct SgdOptions {
  double momentum = 0.9;
  double decay = 0;
  double clip = 0;
};

/// What ranks that train together share, in place of each having all of it: nothing, the moments,
/// or these and the gradients.
enum class Sharing { nothing, moments, gradients };

using OptimizerOptions = std::variant<AdamOptions, SgdOptions>;

/// Parameters that learn differently from the others. A parameter is in one group at most.
struct ParameterGroup {
  std::vector<Parameter> parameters;
  double rate = 1;                   // times the schedule's
  std::optional<double> decay = {};  // none: the optimizer's; of those that decay
  bool frozen = false;               // they stay as they are: no gradient, no step
};

/// Changes all parameters that are not frozen by their gradients. A parameter that no loss of the
/// step reached (another task's output head) is left alone in that step. Of one that learns in some
/// rows only, the other rows count for nothing: they have no step, no decay, no share in the norm,
/// and nothing is remembered of them.
///
/// Where the norm of the gradients or a loss is not finite, nothing changes in that step nor in any
/// later one until go_on(): whoever reads norm() and the losses may come late.
///
/// Ranks may share what is remembered of parameters: each holds it for those it owns, whole tensors
/// and about as many numbers as others, takes their steps, and hears of the other ones' values.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual std::string_view kind() const = 0;

  /// Brings what differs from step to step to the backend's memory; steps count from 1.
  void prepare(double rate, std::int64_t step);
  /// Takes the step that was prepared, without looking at anything, and clears the gradients.
  /// losses [n]
  /// reached: where each rank has the gradients of the parameters that it owns alone, which of all
  /// have one.
  void step(const Tensor& losses, const std::vector<bool>* reached = nullptr);
  /// The global norm of the last step's gradients, before clipping. [1]
  const Tensor& norm() const { return norm_; }
  /// What the last step multiplied the gradients by, for clipping. [1]
  const Tensor& factor() const { return factor_; }
  void go_on();

  struct State {
    std::string name;  // the parameter's, with ".m" and the like
    Tensor tensor;
  };
  /// What it remembers from step to step, to be saved and restored; of what ranks share, what this
  /// one holds.
  std::vector<State> state() const;

  /// For whoever takes a step again by its formula: the numbers that stand in it at a step of this
  /// rate, by name; and what is each parameter's own.
  using Numbers = std::vector<std::pair<std::string, std::vector<double>>>;
  Numbers numbers(double rate, std::int64_t step) const;
  struct Learning {
    Parameter parameter;
    double rate;  // times the schedule's
    double decay;
  };
  std::vector<Learning> learning() const;

  /// The rank that holds what is remembered of each parameter; 0 of those that are frozen.
  std::vector<int> owners() const;

  /// Where ranks share it: from here on this one holds all, so that it can be read from a file.
  void hold_all();
  void hold_own();  // and no more
  bool holds_all() const;

 protected:
  using Groups = std::span<const ParameterGroup>;
  struct Shared {
    double decay, clip;
    std::vector<std::string_view> state;  // what is remembered of each parameter, by name
    std::int64_t numbers;                 // that differ from step to step
    bool short_state = false;             // bf16 beside f32 parameters
  };
  /// ranks: those that share what is remembered; none where each rank has all of it.
  Optimizer(const Parameters& parameters, Shared shared, Groups groups, Communicator* ranks);

  /// Parameters that take a step alike. state[k][i]: of kind k, parameter i's.
  struct Update {
    std::vector<Tensor> parameters = {}, gradients = {};
    std::vector<std::vector<Tensor>> state = {};
    std::vector<double> decay = {};
    Tensor now, factor;
  };
  /// The numbers of a step at this rate.
  virtual std::vector<double> now(double rate, std::int64_t step) const = 0;
  virtual Numbers constants() const = 0;
  virtual void apply(const Update& update) const = 0;

 private:
  struct Entry {
    Parameter parameter;
    std::size_t number;         // of the parameter, among all
    std::vector<Rows> rows;     // of it, that learn
    std::vector<Tensor> state;  // of these rows, one after another; none where another rank's
    double decay;
    int owner;
  };
  /// Those whose rate is `rate` times the schedule's.
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
  std::size_t parameters_ = 0;  // of the model, frozen ones included
  DType kept_;                  // the type of what is remembered
  std::vector<Rated> all_;
  Tensor norm_, factor_;
};

class AdamOptimizer final : public Optimizer {
 public:
  AdamOptimizer(const Parameters& parameters, const AdamOptions& options, Groups groups = {},
                Communicator* ranks = nullptr);
  std::string_view kind() const override { return "adam"; }

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
  std::vector<double> now(double rate, std::int64_t step) const override;
  Numbers constants() const override;
  void apply(const Update& update) const override;

  SgdOptions options_;
};

std::unique_ptr<Optimizer> make_optimizer(const Parameters& parameters,
                                          const OptimizerOptions& options,
                                          std::span<const ParameterGroup> groups = {},
                                          Communicator* ranks = nullptr);

}  // namespace longhand::nn
