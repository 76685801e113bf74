#include "tasks/boxes_world.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace longhand::tasks {
namespace {

/// Draws from a Poisson distribution by Knuth's method: uniform numbers are multiplied one after
/// another. The result is the largest number of factors for which the product is above e^-mean.
int poisson(double mean, Rng& rng) {
  const double least = std::exp(-mean);
  int count = 0;
  for (double product = rng.uniform(); product > least; product *= rng.uniform()) ++count;
  return count;
}

int below(Rng& rng, std::size_t bound) {
  return static_cast<int>(rng.below(static_cast<std::uint32_t>(bound)));
}

/// A hash of the contents of all boxes: FNV-1a, followed by the mixing function of splitmix64.
std::uint64_t name_of(const std::vector<std::vector<int>>& boxes) {
  std::uint64_t name = 0xcbf29ce484222325;
  const auto add = [&](std::uint64_t byte) { name = (name ^ byte) * 0x100000001b3; };
  for (const std::vector<int>& box : boxes) {
    add(255);  // marks the start of a box
    for (const int item : box) add(static_cast<std::uint64_t>(item));
  }
  name = (name ^ (name >> 30)) * 0xbf58476d1ce4e5b9;
  name = (name ^ (name >> 27)) * 0x94d049bb133111eb;
  return name ^ (name >> 31);
}

}  // namespace

BoxesWorld::BoxesWorld(const BoxesRules& rules, Rng& rng) : rules_(rules) {
  const bool tests = rules.split == BoxesRules::Split::test;
  do draw_first(rng);
  while (rules.split != BoxesRules::Split::all && (name_of(boxes_) % 16 == 0) != tests);
}

void BoxesWorld::draw_first(Rng& rng) {
  boxes_.assign(static_cast<std::size_t>(rules_.boxes), {});
  outside_.resize(static_cast<std::size_t>(rules_.objects));
  std::iota(outside_.begin(), outside_.end(), 0);

  std::vector<int> used(boxes_.size());
  std::iota(used.begin(), used.end(), 0);
  const bool any = rules_.occupied == BoxesRules::Occupied::any;
  if (!any) {
    rng.shuffle(used.begin(), used.end());
    used.resize(static_cast<std::size_t>(rules_.half()));
  }
  for (const int box : used) {
    int count = 1;
    if (!rules_.one_at_start) {
      do count = poisson(2, rng);
      while (!any && count == 0);
    }
    items(box) = take_outside(std::min(count, rules_.most_items), rng);
  }
}

std::vector<int> BoxesWorld::take_outside(int count, Rng& rng) {
  std::vector<int> taken;
  for (int i = 0; i < count; ++i) {
    std::swap(outside_[static_cast<std::size_t>(below(rng, outside_.size()))], outside_.back());
    taken.push_back(outside_.back());
    outside_.pop_back();
  }
  std::ranges::sort(taken);
  return taken;
}

/// Draws a non-empty subset of the box's objects. All subsets are equally likely.
std::vector<int> BoxesWorld::some_of(int box, Rng& rng) {
  std::vector<int> some;
  while (some.empty()) {
    std::ranges::copy_if(items(box), std::back_inserter(some),
                         [&](int) { return rng.below(2) == 1; });
  }
  return some;
}

bool BoxesWorld::allowed(Kind kind, int box, int target, int count) const {
  const bool empties = kind != Kind::put && count == size(box);
  const int filled = kind == Kind::move ? target : box;
  if (kind != Kind::remove && size(filled) + count > rules_.most_items) return false;

  auto occupied = static_cast<int>(
      std::ranges::count_if(boxes_, [](const std::vector<int>& items) { return !items.empty(); }));
  occupied -= empties;
  occupied += kind != Kind::remove && size(filled) == 0;
  using Occupied = BoxesRules::Occupied;
  if (rules_.occupied == Occupied::exactly && occupied != rules_.half()) return false;
  if (rules_.occupied == Occupied::at_most && occupied > rules_.half()) return false;
  // In the advanced version, at least one box must contain an object, because the answer describes
  // only non-empty boxes.
  return occupied > 0 || !rules_.advanced;
}

std::vector<BoxesOperation::Kind> BoxesWorld::possible() const {
  std::vector<Kind> kinds;
  for (const Kind kind : {Kind::move, Kind::remove, Kind::put}) {
    bool found = false;
    for (int box = 0; box < rules_.boxes; ++box) {
      const bool whole = kind == Kind::move && rules_.advanced;
      const int most = kind == Kind::put ? rules_.most_items : size(box);
      const int least = whole && most > 0 ? most : 1;
      for (int count = least; count <= most; ++count) {
        for (int target = 0; target < (kind == Kind::move ? rules_.boxes : 1); ++target) {
          if (kind == Kind::move && target == box) continue;
          found = found || allowed(kind, box, target, count);
        }
      }
    }
    if (found) kinds.push_back(kind);
  }
  return kinds;
}

BoxesOperation BoxesWorld::step(Rng& rng) {
  std::vector<Kind> kinds{Kind::move, Kind::remove, Kind::put};
  if (rules_.feasible_kinds) {
    kinds = possible();
    kinds = {kinds[static_cast<std::size_t>(below(rng, kinds.size()))]};
  }
  for (;;) {
    ++proposals_;
    BoxesOperation operation{.kind = kinds[static_cast<std::size_t>(below(rng, kinds.size()))],
                             .box = below(rng, boxes_.size())};
    const int box = operation.box;
    if (operation.kind == Kind::put) {
      const int count = rules_.one_put ? 1 : poisson(1, rng);
      if (count == 0 || !allowed(Kind::put, box, 0, count)) continue;
      operation.items = take_outside(count, rng);
      items(box).insert(items(box).end(), operation.items.begin(), operation.items.end());
      std::ranges::sort(items(box));
      return operation;
    }
    if (size(box) == 0) continue;
    if (operation.kind == Kind::move) {
      operation.target = below(rng, boxes_.size() - 1);
      operation.target += operation.target >= box;
    }
    const bool all = operation.kind == Kind::move && rules_.advanced;
    operation.items = all ? items(box) : some_of(box, rng);
    const auto count = static_cast<int>(operation.items.size());
    if (!allowed(operation.kind, box, operation.target, count)) continue;

    operation.whole = count == size(box);
    std::erase_if(items(box),
                  [&](int item) { return std::ranges::binary_search(operation.items, item); });
    std::vector<int>& to = operation.kind == Kind::move ? items(operation.target) : outside_;
    to.insert(to.end(), operation.items.begin(), operation.items.end());
    if (operation.kind == Kind::move) std::ranges::sort(to);
    return operation;
  }
}

int boxes_operations(const BoxesRules& rules, Rng& rng) {
  if (rules.length == BoxesRules::Length::fixed) return rules.operations;
  const double u = rng.uniform();
  const double drawn =
      rules.length == BoxesRules::Length::log_uniform
          ? std::floor(std::exp(u * std::log(rules.operations + 1.0)))
          : std::round(std::exp(u * std::log(static_cast<double>(rules.operations))));
  return std::clamp(static_cast<int>(drawn), 1, rules.operations);
}

}  // namespace longhand::tasks
