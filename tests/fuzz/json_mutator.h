#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/rng.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t room);

namespace longhand::fuzz {

/// Makes random edits that keep JSON valid, so that the parser accepts the input. An edit replaces
/// a value by a number, by a value of another type or by a copy of another value, puts it inside an
/// array or object, changes a text or a member's name, or removes or repeats an element.
class JsonMutator {
 public:
  explicit JsonMutator(unsigned seed) : rng_(seed, Purpose::test) {}

  void edit(Json& root) {
    std::vector<Json*> nodes;
    gather(root, nodes);
    Json& node = *nodes[below(nodes.size())];
    switch (below(7)) {
      case 0:
        node = number();
        break;
      case 1:
        node = other_kind();
        break;
      case 2: {
        const Json copy = *nodes[below(nodes.size())];
        node = copy;
        break;
      }
      case 3: {
        const Json inside = node;
        node = below(2) == 0 ? Json(Json::Array{inside}) : Json(Json::Object{{"a", inside}});
        break;
      }
      case 4:
        if (node.is_string()) {
          node = changed(node.string());
        } else {
          node = number();
        }
        break;
      default:
        edit_children(node);
    }
  }

 private:
  std::size_t below(std::size_t bound) {
    return rng_.below(static_cast<std::uint32_t>(std::max<std::size_t>(1, bound)));
  }

  static void gather(Json& node, std::vector<Json*>& nodes) {
    nodes.push_back(&node);
    if (node.is_array()) {
      for (std::size_t i = 0; i < node.size(); ++i) gather(node[i], nodes);
    } else if (node.is_object()) {
      std::vector<std::string> names;
      for (const auto& member : node.members()) names.push_back(member.first);
      for (const std::string& name : names) gather(node[name], nodes);
    }
  }

  /// Numbers that often reveal bugs: negative ones, limits of each type, and numbers whose products
  /// overflow.
  Json number() {
    constexpr std::array<std::int64_t, 16> integers{
        0,        -1,        1,         2,          255,
        256,      512,       513,       65535,      1 << 20,
        1 << 30,  INT32_MAX, INT32_MIN, UINT32_MAX, std::int64_t{1} << 62,
        INT64_MIN};
    switch (below(4)) {
      case 0:
        return std::numeric_limits<std::uint64_t>::max() - below(3);
      case 1: {
        constexpr std::array<double, 6> fractions{0.5, -0.0, 1e308, -1e308, 1e-320, 1e19};
        return fractions[below(fractions.size())];
      }
      default:
        return integers[below(integers.size())];
    }
  }

  Json other_kind() {
    switch (below(6)) {
      case 0:
        return nullptr;
      case 1:
        return below(2) == 0;
      case 2:
        return Json::array();
      case 3:
        return Json::object();
      case 4:
        return "";
      default:
        return number();
    }
  }

  std::string changed(const std::string& text) {
    std::vector<std::uint8_t> bytes(text.begin(), text.end());
    const std::size_t size = bytes.size();
    bytes.resize(size + 32);
    bytes.resize(LLVMFuzzerMutate(bytes.data(), size, bytes.size()));
    return {bytes.begin(), bytes.end()};
  }

  void edit_children(Json& node) {
    if (node.is_array()) {
      Json::Array elements = node.elements();
      edit_list(elements);
      node = Json(std::move(elements));
    } else if (node.is_object()) {
      Json::Object members = node.members();
      if (!members.empty() && below(3) == 0) {
        std::string& name = members[below(members.size())].first;
        name = changed(name);
      } else {
        edit_list(members);
      }
      Json::Object once;  // only the first member of each name, because names must be unique
      for (auto& member : members) {
        if (std::ranges::find(once, member.first, &Json::Member::first) == once.end()) {
          once.push_back(std::move(member));
        }
      }
      node = Json(std::move(once));
    }
  }

  template <class List>
  void edit_list(List& list) {
    if (list.empty()) return;
    const auto place = list.begin() + static_cast<std::ptrdiff_t>(below(list.size()));
    if (below(2) == 0) {
      list.erase(place);
    } else {
      auto copy = *place;
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(below(list.size() + 1)),
                  std::move(copy));
    }
  }

  Rng rng_;
};

/// Applies one to four edits to the JSON text of `size` bytes in a buffer of `room` bytes, and
/// returns the new size. Returns 0 if the input is not JSON or the result is too long.
inline std::size_t mutate_json(std::uint8_t* data, std::size_t size, std::size_t room,
                               unsigned seed) {
  auto json = Json::parse({reinterpret_cast<const char*>(data), size});
  if (!json) return 0;
  JsonMutator mutator(seed);
  for (unsigned edits = 1 + seed / 4 % 4; edits > 0; --edits) mutator.edit(*json);
  const std::string text = json->dump();
  if (text.size() > room) return 0;
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

/// Implements LLVMFuzzerCustomMutator for a fuzz target whose input is JSON. Three inputs in four
/// are changed by mutate_json(), the others by libFuzzer's own mutations of bytes.
inline std::size_t mutate_json_input(std::uint8_t* data, std::size_t size, std::size_t room,
                                     unsigned seed) {
  const std::size_t made = seed % 4 == 0 || size > room ? 0 : mutate_json(data, size, room, seed);
  return made > 0 ? made : LLVMFuzzerMutate(data, size, room);
}

}  // namespace longhand::fuzz
