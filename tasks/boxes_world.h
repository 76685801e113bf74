#pragma once

#include <cstdint>
#include <vector>

#include "core/rng.h"
#include "tasks/boxes_rules.h"

namespace longhand::tasks {

struct BoxesOperation {
  enum class Kind { move, remove, put };
  Kind kind = Kind::move;
  int box = 0, target = 0;  // a move goes from `box` to `target`; other operations use only `box`
  std::vector<int> items = {};  // the objects of the operation, ascending
  bool whole = false;           // true: `items` are all objects in the box
};

/// The contents of all boxes, and random operations on them.
class BoxesWorld {
 public:
  /// Draws the initial contents of the boxes. A hash of the contents determines whether they belong
  /// to the training set or to the test set. rules.split selects the set from which contents are
  /// drawn, or both sets.
  BoxesWorld(const BoxesRules& rules, Rng& rng);

  /// Draws and applies an operation. By default, as in Kim and Schuster 2023, the kind, the boxes
  /// and the objects are all drawn again until the rules allow the operation. With
  /// rules.feasible_kinds, the kind is drawn only once, from the possible kinds.
  BoxesOperation step(Rng& rng);

  /// The objects in each box, in ascending order.
  const std::vector<std::vector<int>>& boxes() const { return boxes_; }
  /// Number of operations drawn so far, including those that the rules did not allow.
  std::int64_t proposals() const { return proposals_; }

 private:
  using Kind = BoxesOperation::Kind;

  void draw_first(Rng& rng);
  std::vector<int>& items(int box) { return boxes_[static_cast<std::size_t>(box)]; }
  int size(int box) const { return static_cast<int>(boxes_[static_cast<std::size_t>(box)].size()); }
  /// True if the rules allow an operation with `count` objects. A put uses objects that are in no
  /// box, other operations use objects of `box`.
  bool allowed(Kind kind, int box, int target, int count) const;
  std::vector<Kind> possible() const;
  std::vector<int> take_outside(int count, Rng& rng);
  std::vector<int> some_of(int box, Rng& rng);

  const BoxesRules& rules_;
  std::vector<std::vector<int>> boxes_;
  std::vector<int> outside_;  // objects that are in no box, in any order
  std::int64_t proposals_ = 0;
};

/// Draws the number of operations of a sample.
int boxes_operations(const BoxesRules& rules, Rng& rng);

}  // namespace longhand::tasks
