#pragma once

#include <cstdint>
#include <vector>

#include "core/rng.h"
#include "tasks/boxes_rules.h"

namespace longhand::tasks {

struct BoxesOperation {
  enum class Kind { move, remove, put };
  Kind kind = Kind::move;
  int box = 0, target = 0;      // target: of a move
  std::vector<int> items = {};  // ascending
  bool whole = false;           // all that the box held
};

/// What is in which box, and how it changes: the random part of the boxes task.
class BoxesWorld {
 public:
  /// Draws the first state, on the side of the split that the rules want.
  BoxesWorld(const BoxesRules& rules, Rng& rng);

  /// Draws an operation as Kim and Schuster do, kind, boxes and objects together and all of them
  /// again where the rules forbid it, and carries it out.
  BoxesOperation step(Rng& rng);

  /// The objects in each box, ascending.
  const std::vector<std::vector<int>>& boxes() const { return boxes_; }
  std::int64_t proposals() const { return proposals_; }  // so far, the forbidden ones too

 private:
  using Kind = BoxesOperation::Kind;

  void draw_first(Rng& rng);
  std::vector<int>& items(int box) { return boxes_[static_cast<std::size_t>(box)]; }
  int size(int box) const { return static_cast<int>(boxes_[static_cast<std::size_t>(box)].size()); }
  /// Whether so many of the box's objects (for a put: outside ones) may take part.
  bool allowed(Kind kind, int box, int target, int count) const;
  std::vector<Kind> possible() const;
  std::vector<int> take_outside(int count, Rng& rng);
  std::vector<int> some_of(int box, Rng& rng);

  const BoxesRules& rules_;
  std::vector<std::vector<int>> boxes_;
  std::vector<int> outside_;  // in any order
  std::int64_t proposals_ = 0;
};

/// How many operations a sample has.
int boxes_operations(const BoxesRules& rules, Rng& rng);

}  // namespace longhand::tasks
