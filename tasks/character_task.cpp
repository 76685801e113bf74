#include "tasks/character_task.h"

#include <algorithm>

#include "core/error.h"
#include "core/quote.h"

namespace longhand::tasks {
namespace {

constexpr char end = '\n';

}  // namespace

CharacterTask::CharacterTask(const OptionValues& options, const Framing::Own& own,
                             std::int64_t longest)
    : name_(options.task()),
      ended_(own.ended),
      framing_(options, own),
      longest_(std::ssize(framing_.before()) + std::ssize(framing_.between()) + longest +
               std::ssize(framing_.after())) {}

std::vector<std::int32_t> CharacterTask::ends() const {
  if (framing_.after().empty()) return {};
  return {framing_.after().front()};
}

std::vector<std::int32_t> CharacterTask::couplings(std::span<const std::int32_t> tokens) const {
  if (!has_own_tokens()) return {};
  return coupled(vocabulary().decode(tokens));
}

std::vector<std::int32_t> CharacterTask::digit_places(std::span<const std::int32_t> tokens) const {
  if (!has_own_tokens()) return {};
  return places_of_digits(vocabulary().decode(tokens));
}

Sample CharacterTask::sample(Rng& rng, int) const { return made_of(draw(rng)); }

Sample CharacterTask::made_of(const Written& written) const {
  Sample sample;
  const auto append = [&sample](std::span<const std::int32_t> tokens) {
    sample.tokens.insert(sample.tokens.end(), tokens.begin(), tokens.end());
  };
  append(framing_.before());
  append(framing_.tokens_of(written.prompt));
  append(framing_.between());
  const std::size_t answer = sample.tokens.size();
  append(framing_.tokens_of(written.answer));
  append(framing_.after());
  sample.targets.assign(sample.tokens.size(), Sample::not_counted);
  for (std::size_t i = answer; i < sample.tokens.size(); ++i) {
    sample.asked.push_back(static_cast<std::int32_t>(i - 1));
    sample.targets[i - 1] = sample.tokens[i];
  }
  return sample;
}

CharacterTask::Places CharacterTask::places_in(const Sample& sample) const {
  return {.prompt = framing_.before().size(),
          .answer = static_cast<std::size_t>(sample.asked.front()) + 1,
          .answer_end = sample.tokens.size() - framing_.after().size()};
}

std::pair<std::string, std::string> CharacterTask::as_text(const Sample& sample) const {
  const Places places = places_in(sample);
  const auto text_of = [&](std::size_t from, std::size_t to) {
    return framing_.characters_of(std::span(sample.tokens).subspan(from, to - from));
  };
  return {text_of(places.prompt, places.answer - framing_.between().size()),
          text_of(places.answer, places.answer_end) + (ended_ ? std::string(1, end) : "")};
}

Sample CharacterTask::sample_of(std::string_view text) const {
  if (ended_ && text.ends_with(end)) text.remove_suffix(1);
  const std::size_t begin = answer_in(text);
  LONGHAND_CHECK(begin != std::string_view::npos, name_, ": expected a prompt and its answer, got ",
                 quote(text));
  const auto wrong = check(text.substr(0, begin), text.substr(begin), 0);
  LONGHAND_CHECK(!wrong, name_, ": ", *wrong);
  return made_of({std::string(text.substr(0, begin)), std::string(text.substr(begin))});
}

void CharacterTask::score(const Sample& sample, std::span<const std::int32_t> said,
                          Tally& tally) const {
  add_answer(sample, said, tally);
}

std::vector<ReferenceRow> CharacterTask::reference(const Sample& sample) const {
  const Places places = places_in(sample);
  auto [prompt, answer] = as_text(sample);
  if (ended_) answer.pop_back();
  // clang 14 cannot capture `prompt` in a lambda, because it is a structured binding
  const std::size_t asked_from = prompt.size();
  const auto token_of = [&](std::size_t character) {
    const std::size_t token =
        character < asked_from ? places.prompt + character : places.answer + character - asked_from;
    return static_cast<std::int32_t>(token);
  };
  std::vector<ReferenceRow> rows;
  for (const Look& look : looks(prompt + answer, prompt.size())) {
    if (look.at.empty()) continue;
    ReferenceRow row{.row = token_of(look.place) - 1, .columns = {}};
    for (const std::size_t at : look.at) row.columns.push_back(token_of(at));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string CharacterTask::answer(std::string_view prompt, int) const {
  std::string right;
  const std::string wrong = solve(prompt, right);
  LONGHAND_CHECK(wrong.empty(), name_, ": ", wrong);
  return ended_ ? right + end : right;
}

std::optional<std::string> CharacterTask::check(std::string_view prompt, std::string_view answer,
                                                int) const {
  std::string right;
  std::string wrong = solve(prompt, right);
  if (!wrong.empty()) return wrong;
  if (ended_ && answer.ends_with(end)) answer.remove_suffix(1);
  wrong = judge(prompt, answer, right);
  if (!wrong.empty()) return wrong;
  return std::nullopt;
}

std::string CharacterTask::judge(std::string_view, std::string_view answer,
                                 std::string_view right) const {
  const auto [said, wanted] = std::ranges::mismatch(answer, right);
  if (said == answer.end() && wanted == right.end()) return {};
  const auto rest_of = [](std::string_view all, auto from) {
    return from == all.end() ? std::string("the end") : quote(std::string(1, *from));
  };
  return text("character ", wanted - right.begin() + 1, " of the answer: expected ",
              rest_of(right, wanted), ", got ", rest_of(answer, said));
}

std::size_t CharacterTask::answer_in(std::string_view sample) const {
  const std::size_t sign = sample.find('=');
  return sign == std::string_view::npos ? sign : sign + 1;
}

TaskKind character_kind(TaskKind kind) {
  for (TaskOption& option : Framing::options()) kind.options.push_back(std::move(option));
  return kind;
}

namespace digits {

std::string draw(std::int64_t count, Rng& rng) {
  std::string number;
  for (std::int64_t place = 1; place <= count; ++place) {
    const bool first = place == count && count > 1;
    number += static_cast<char>('0' + (first ? 1 + rng.below(9) : rng.below(10)));
  }
  return number;
}

std::string padded(std::string number, std::size_t width) {
  number.resize(std::max(width, number.size()), '0');
  return number;
}

std::string trimmed(std::string_view number) {
  const std::size_t last = number.find_last_not_of('0');
  return last == std::string_view::npos ? "0" : std::string(number.substr(0, last + 1));
}

std::string sum(std::string_view a, std::string_view b) {
  std::string total;
  int carry = 0;
  for (std::size_t place = 0; place < a.size() || place < b.size() || carry > 0; ++place) {
    const int digits =
        carry + (place < a.size() ? a[place] - '0' : 0) + (place < b.size() ? b[place] - '0' : 0);
    total += static_cast<char>('0' + digits % 10);
    carry = digits / 10;
  }
  return total;
}

bool less(std::string_view a, std::string_view b) {
  const std::string left = trimmed(a), right = trimmed(b);
  if (left.size() != right.size()) return left.size() < right.size();
  return std::lexicographical_compare(left.rbegin(), left.rend(), right.rbegin(), right.rend());
}

std::vector<std::int32_t> places(std::string_view text, bool counted) {
  std::vector<std::int32_t> all;
  std::int32_t place = 0;
  for (const char c : text) {
    const bool in_number = (c >= '0' && c <= '9') || (counted && c == end);
    place = in_number ? place + 1 : 0;
    all.push_back(place);
  }
  return all;
}

std::vector<std::string> split(std::string_view text, char sign, std::size_t most) {
  std::vector<std::string> numbers;
  while (true) {
    const std::size_t length = std::min(text.find(sign), text.size());
    const std::string_view number = text.substr(0, length);
    const bool sound = !number.empty() && number.size() <= most &&
                       number.find_first_not_of("0123456789") == std::string_view::npos;
    if (!sound) return {};
    numbers.emplace_back(number);
    if (length == text.size()) return numbers;
    text.remove_prefix(length + 1);
  }
}

}  // namespace digits

}  // namespace longhand::tasks
