#pragma once

#include <cstdint>
#include <vector>

#include "core/rng.h"
#include "tasks/boxes_rules.h"

namespace longhand::tasks {

struct BoxesOperation {
  enum class Kind { move, remove, put };
  Kind kind = Kind::move;
  int box = 0, target = 0;      // target: only for a move
  std::vector<int> items = {};  // in ascending order
  bool whole = false;           // the operation takes everything in the box
};

/// The contents of all boxes and random operations on them.
class BoxesWorld {
 public:
  /// Draws an initial state in the part of the split that the rules select.
  BoxesWorld(const BoxesRules& rules, Rng& rng);

  /// Draws an operation as Kim and Schuster do: kind, boxes and objects together, again until the
  /// rules allow it. Then applies it.
  BoxesOperation step(Rng& rng);

  /// The objects in each box, ascending.
  const std::vector<std::vector<int>>& boxes() const { return boxes_; }
  std::int64_t proposals() const { return proposals_; }  // so far, including forbidden ones

 private:
  using Kind = BoxesOperation::Kind;

  void draw_first(Rng& rng);
  std::vector<int>& items(int box) { return boxes_[static_cast<std::size_t>(box)]; }
  int size(int box) const { return static_cast<int>(boxes_[static_cast<std::size_t>(box)].size()); }
  /// True if `count` of the box's objects (of outside objects, for a put) may take part.
  bool allowed(Kind kind, int box, int target, int count) const;
  std::vector<Kind> possible() const;
  std::vector<int> take_outside(int count, Rng& rng);
  std::vector<int> some_of(int box, Rng& rng);

  const BoxesRules& rules_;
  std::vector<std::vector<int>> boxes_;
  std::vector<int> outside_;  // in any order
  std::int64_t proposals_ = 0;
};

/// Draws the number of operations of a sample.
int boxes_operations(const BoxesRules& rules, Rng& rng);

}  // namespace longhand::tasks
