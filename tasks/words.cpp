#include "tasks/words.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "core/error.h"
#include "core/quote.h"

namespace longhand::tasks {
namespace {

using Tokens = std::vector<std::int32_t>;
using Permutation = std::vector<std::int32_t>;  // the image of each point

constexpr std::int64_t longest_word = 1 << 20, largest_modulus = 4096;

/// The group that the option `group` names.
struct GroupName {
  bool cyclic = false;
  bool even = false;  // true: the group consists of the even permutations
  std::int32_t points = 0;

  static GroupName of(const OptionValues& options) {
    const std::string& name = options.text("group");
    if (name == "s2") return {.points = 2};
    if (name == "s3") return {.points = 3};
    if (name == "a5") return {.even = true, .points = 5};
    if (name == "s5") return {.points = 5};
    GroupName group{.cyclic = true};
    const char* const end = name.data() + name.size();
    const bool is_cyclic = name.starts_with('z') && name.size() > 1 && name[1] != '0';
    if (is_cyclic) {
      const auto [stop, error] = std::from_chars(name.data() + 1, end, group.points);
      if (error != std::errc() || stop != end) group.points = 0;
    }
    LONGHAND_CHECK(group.points >= 2 && group.points <= largest_modulus,
                   "task words: option group: expected s2, s3, a5, s5 or z2 to z", largest_modulus,
                   ", got ", quote(name));
    return group;
  }
};

bool is_even(const Permutation& permutation) {
  std::int64_t inversions = 0;
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    for (std::size_t j = i + 1; j < permutation.size(); ++j) {
      inversions += permutation[i] > permutation[j];
    }
  }
  return inversions % 2 == 0;
}

/// A group, for the generator of samples. A table contains the products of all pairs of
/// permutations. In the cyclic group zN, products are sums modulo N and need no table.
class Group {
 public:
  explicit Group(const GroupName& name) {
    if (name.cyclic) {
      size_ = name.points;
      if (size_ == 2) swaps_ = {1};
      return;
    }
    std::vector<Permutation> elements;
    Permutation next(static_cast<std::size_t>(name.points));
    std::iota(next.begin(), next.end(), 0);
    do {
      if (!name.even || is_even(next)) elements.push_back(next);
    } while (std::ranges::next_permutation(next).found);
    size_ = static_cast<std::int32_t>(elements.size());
    Permutation product = next;
    for (std::int32_t a = 0; a < size_; ++a) {
      const Permutation& outer = elements[static_cast<std::size_t>(a)];
      std::size_t moved = 0;
      for (std::size_t x = 0; x < outer.size(); ++x) {
        moved += outer[x] != static_cast<std::int32_t>(x);
      }
      if (moved == 2) swaps_.push_back(a);
      for (const Permutation& inner : elements) {
        for (std::size_t x = 0; x < inner.size(); ++x) {
          product[x] = outer[static_cast<std::size_t>(inner[x])];
        }
        const auto place = std::ranges::lower_bound(elements, product);
        products_.push_back(static_cast<std::int32_t>(place - elements.begin()));
      }
    }
  }

  std::int32_t size() const { return size_; }
  /// The elements that exchange two points and leave all others in place.
  const Tokens& swaps() const { return swaps_; }
  /// The product a∘b, which applies b first. Elements are identified by their numbers.
  std::int32_t product(std::int32_t a, std::int32_t b) const {
    if (products_.empty()) return (a + b) % size_;
    const std::size_t row = static_cast<std::size_t>(a) * static_cast<std::size_t>(size_);
    return products_[row + static_cast<std::size_t>(b)];
  }

 private:
  std::int32_t size_ = 0;
  Tokens swaps_;
  Tokens products_;
};

/// The permutation of n = `points` points with this rank in lexicographic order. The rank is
/// written as a mixed-radix number: the bases of its digits are n, n - 1, ..., 1. Each digit is the
/// index of the next image among the points that are not used yet.
Permutation permutation_of(std::int64_t rank, std::int64_t points) {
  Tokens digits;
  for (std::int64_t base = 1; base <= points; ++base) {
    digits.push_back(static_cast<std::int32_t>(rank % base));
    rank /= base;
  }
  Tokens left(digits.size());
  std::iota(left.begin(), left.end(), 0);
  Permutation picked;
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
    picked.push_back(left[static_cast<std::size_t>(*digit)]);
    left.erase(left.begin() + *digit);
  }
  return picked;
}

/// The rank of a permutation of n points in lexicographic order. The rank is computed as a
/// mixed-radix number: the bases of its digits are n, n - 1, ..., 1. Digit i is the number of
/// images after image i that are smaller than image i.
std::int64_t rank_of(const Permutation& permutation) {
  std::int64_t rank = 0;
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    const auto rest = std::span(permutation).subspan(i);
    rank =
        rank * std::ssize(rest) + std::ranges::count_if(rest, [&](auto x) { return x < rest[0]; });
  }
  return rank;
}

class Words final : public Task {
 public:
  explicit Words(const OptionValues& options)
      : name_(GroupName::of(options)),
        group_(name_),
        most_(options.integer("max", 1, longest_word)),
        least_(options.integer("min", 0, longest_word)),
        swaps_(options.choice("moves", {"all", "swaps"}) == 1),
        last_(options.choice("asked", {"all", "last"}) == 1),
        vocabulary_(WordVocabulary::of_numbers(group_.size())) {
    LONGHAND_CHECK(least_ <= most_, "task words: option min: expected at most ", most_,
                   ", the value of option \"max\", got ", least_);
    if (least_ == 0) least_ = most_;
    LONGHAND_CHECK(!swaps_ || !group_.swaps().empty(),
                   "task words: option moves: expected \"all\", because no element of the group ",
                   options.text("group"), " exchanges two points, got \"swaps\"");
    moves_ = group_.swaps();
    if (!swaps_) {
      moves_.resize(static_cast<std::size_t>(group_.size()));
      std::iota(moves_.begin(), moves_.end(), 0);
    }
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  Outputs outputs() const override { return {1, group_.size(), false}; }
  std::int64_t longest() const override { return most_; }
  std::string_view main_metric() const override { return "tokens"; }

  Sample sample(Rng& rng, int) const override {
    const std::int64_t length = least_ + rng.below(static_cast<std::uint32_t>(most_ - least_ + 1));
    Sample sample;
    std::int32_t product = 0;  // element 0 is the identity
    for (std::int64_t t = 0; t < length; ++t) {
      const std::int32_t move = moves_[rng.below(static_cast<std::uint32_t>(moves_.size()))];
      product = group_.product(product, move);
      sample.tokens.push_back(move);
      const bool is_asked = !last_ || t + 1 == length;
      if (is_asked) sample.asked.push_back(static_cast<std::int32_t>(t));
      sample.targets.push_back(is_asked ? product : Sample::not_counted);
    }
    return sample;
  }

  /// `above-chance`: the share of right tokens, rescaled so that guessing gives 0. In a group of n
  /// elements, it is (share - 1/n) / (1 - 1/n).
  void score(const Sample& sample, std::span<const std::int32_t> said,
             Tally& tally) const override {
    add_answer(sample, said, tally);
    const auto total = static_cast<double>(said.size());
    const auto right = static_cast<double>(count_right(sample, said));
    const double chance = 1.0 / group_.size();
    tally.add_ratio("above-chance", (right - total * chance) / (1 - chance), std::ssize(said));
  }

  /// There is no reference attention, because each output depends on all tokens so far.
  std::vector<ReferenceRow> reference(const Sample&) const override { return {}; }

  /// The answer lists all scored products.
  std::pair<std::string, std::string> as_text(const Sample& sample) const override {
    Tokens products;
    for (const std::int32_t output : sample.asked) {
      products.push_back(sample.targets[static_cast<std::size_t>(output)]);
    }
    return {vocabulary_.decode(sample.tokens), vocabulary_.decode(products)};
  }

  std::string answer(std::string_view prompt, int) const override {
    Tokens products;
    const std::string wrong = solve(prompt, products);
    LONGHAND_CHECK(wrong.empty(), "words: ", wrong);
    return vocabulary_.decode(products);
  }

  std::optional<std::string> check(std::string_view prompt, std::string_view answer,
                                   int) const override {
    Tokens products, said;
    std::string wrong = solve(prompt, products);
    if (wrong.empty()) wrong = vocabulary_.encode(answer, said);
    if (!wrong.empty()) return wrong;
    for (std::size_t i = 0; i < std::min(said.size(), products.size()); ++i) {
      if (said[i] == products[i]) continue;
      return text("product ", i + 1, ": expected ", products[i], ", got ", said[i]);
    }
    if (said.size() == products.size()) return std::nullopt;
    return text("expected ", products.size(), " products, got ", said.size());
  }

 private:
  /// Computes the products of a word of any length by the definition: adds numbers or permutes
  /// points. Returns a description of what is wrong, or an empty text if nothing is wrong.
  std::string solve(std::string_view prompt, Tokens& products) const {
    Tokens word;
    std::string wrong = vocabulary_.encode(prompt, word);
    if (!wrong.empty()) return wrong;
    if (word.empty()) return "expected elements of the group, got none";
    wrong = name_.cyclic ? add_up(word, products) : move_points(word, products);
    if (wrong.empty() && last_) products.erase(products.begin(), products.end() - 1);
    return wrong;
  }

  std::string add_up(const Tokens& word, Tokens& sums) const {
    std::int64_t sum = 0;
    for (std::size_t t = 0; t < word.size(); ++t) {
      // Among the cyclic groups, only z2 has a swap, which is its element 1.
      if (swaps_ && word[t] != 1) return no_swap(t, word[t]);
      sum += word[t];
      sums.push_back(static_cast<std::int32_t>(sum % name_.points));
    }
    return {};
  }

  std::string move_points(const Tokens& word, Tokens& products) const {
    Permutation product = element(0), next = product;
    for (std::size_t t = 0; t < word.size(); ++t) {
      const Permutation move = element(word[t]);
      std::size_t fixed = 0;
      for (std::size_t x = 0; x < move.size(); ++x) {
        fixed += move[x] == static_cast<std::int32_t>(x);
        next[x] = product[static_cast<std::size_t>(move[x])];
      }
      if (swaps_ && fixed + 2 != move.size()) return no_swap(t, word[t]);
      product = next;
      products.push_back(static_cast<std::int32_t>(rank_of(product) / (name_.even ? 2 : 1)));
    }
    return {};
  }

  /// The element of the group with this number. If the group consists of the even permutations,
  /// element k is the permutation with rank 2k or 2k + 1. Permutations with these two ranks differ
  /// only in the order of their last two images, so exactly one of them is even.
  Permutation element(std::int64_t number) const {
    if (!name_.even) return permutation_of(number, name_.points);
    Permutation first = permutation_of(2 * number, name_.points);
    return is_even(first) ? first : permutation_of(2 * number + 1, name_.points);
  }

  static std::string no_swap(std::size_t t, std::int32_t move) {
    return text("element ", t + 1, ": expected an element that exchanges two points, got ", move);
  }

  GroupName name_;
  Group group_;
  std::int64_t most_, least_;
  bool swaps_, last_;
  Tokens moves_;  // the elements from which words are drawn
  WordVocabulary vocabulary_;
};

/// A test distribution: words are `factor` times as long as the longest words in training.
Distribution longer_words(std::int64_t factor) {
  return {text(factor, "x"), [factor](OptionValues& values) {
            values.set("max", text(factor * values.integer("max", 1, longest_word / factor)));
            values.set("min", "0");
          }};
}

/// Sets the lengths of test words: from the maximum in training to 6.4 times this maximum, for
/// example 40 to 256.
void from_the_longest(OptionValues& values) {
  const std::int64_t longest = values.integer("max", 1, longest_word / 8);
  values.set("min", text(longest));
  values.set("max", text(longest * 32 / 5));
}

}  // namespace

TaskKind words() {
  return {
      .name = "words",
      .summary = "multiply group elements: parity, modular sums, permutations",
      .options = {{"group", "s5",
                   "group: s2 (parity), zN (sums modulo N), s3, a5 or s5; each element is a token"},
                  {"moves", "all",
                   "elements that occur in words: all or swaps; swaps: exchanges of two points"},
                  {"min", "0", "minimum number of elements in a word; 0: same as --task.max"},
                  {"max", "128",
                   "maximum number of elements in a word; lengths are drawn uniformly"},
                  {"asked", "all",
                   "products to predict: all (after every element) or last (only after the last "
                   "element)"}},
      .distributions = {{"train", [](OptionValues&) {}},
                        longer_words(2),
                        longer_words(4),
                        {"long", from_the_longest}},
      .make_with = [](const OptionValues& values) { return std::make_unique<Words>(values); }};
}

}  // namespace longhand::tasks
