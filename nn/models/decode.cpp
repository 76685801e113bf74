#include "nn/models/decode.h"

#include <algorithm>

#include "core/contract/gather.h"
#include "core/error.h"
#include "nn/models/cached_decoder.h"

namespace longhand::nn {
namespace {

/// Splits the logits into `choices` rows of equal length and returns the index of the largest logit
/// of each row. If several logits are equally large, returns the lowest index.
std::vector<std::int32_t> likeliest(const Tensor& logits, std::int64_t choices) {
  const Tensor best(logits.backend(), {choices}, DType::i32);
  logits.backend()(Argmax{
      .x = logits.reshape({choices, choices == 0 ? logits.columns() : logits.size() / choices}),
      .y = best});
  return best.to_ints();
}

/// Drops old tokens of a sequence that is longer than options.context. The sequence's first
/// options.kept tokens remain. `left` is the number of tokens that are still to be generated.
void drop_oldest(std::vector<std::int32_t>& sequence, std::int64_t left,
                 const GenerateOptions& options, std::size_t index) {
  const std::int64_t free = options.context - options.kept;
  // Number of tokens to keep at the end of the sequence. Tokens are dropped to make room for the
  // left - 1 generated tokens that the model will read, but for no more than free / 2 tokens.
  const std::int64_t last = free - std::min(left - 1, free / 2);
  sequence.erase(sequence.begin() + options.kept, sequence.end() - last);
  if (options.dropped) options.dropped(index, std::ssize(sequence));
}

using Sequences = std::span<const std::vector<std::int32_t>>;

/// Checks the arguments of generate() and returns the maximum number of new tokens of each prompt.
std::vector<std::int64_t> checked_limits(Sequences prompts, const GenerateOptions& options) {
  LONGHAND_CHECK(options.most_each.empty() || options.most_each.size() == prompts.size(),
                 "decoding: expected a list with one limit on the new tokens for each of the ",
                 prompts.size(), " prompts, got a list of ", options.most_each.size(), " limits");
  LONGHAND_CHECK(options.context == 0 || options.context >= options.kept + 2,
                 "decoding: expected a context of at least ", options.kept + 2, " tokens, got ",
                 options.context);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    LONGHAND_CHECK(!prompts[i].empty(), "decoding: prompt ", i, " is empty");
  }
  if (!options.most_each.empty()) return options.most_each;
  return std::vector<std::int64_t>(prompts.size(), options.most);
}

/// Returns the tokens of each sequence that follow its prompt.
std::vector<std::vector<std::int32_t>> answers_of(Sequences whole, Sequences prompts) {
  std::vector<std::vector<std::int32_t>> answers;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    answers.emplace_back(whole[i].begin() + std::ssize(prompts[i]), whole[i].end());
  }
  return answers;
}

/// Converts the most likely tokens, one per sequence, to choices. `read` is the result of
/// CachedDecoder::read() with Wanted::likeliest.
std::vector<Choice> likeliest_choices(const Tensor& read) {
  std::vector<Choice> next;
  for (const std::int32_t token : read.to_ints()) next.push_back({token});
  return next;
}

/// Draws the next token of each sequence that has new tokens. Sequence i has fresh[i] new tokens.
/// `read` has one row of logits for each sequence with new tokens.
std::vector<Choice> drawn_choices(const Tensor& read, std::span<const std::int32_t> fresh,
                                  Sequences whole, Sequences prompts,
                                  const GenerateOptions& options) {
  const std::vector<double> numbers = read.to_doubles();
  const std::vector<float> all(numbers.begin(), numbers.end());
  const auto classes = static_cast<std::size_t>(read.columns());
  std::vector<Choice> next;
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    if (fresh[i] == 0) continue;
    const auto drawn = static_cast<std::uint32_t>(whole[i].size() - prompts[i].size());
    Rng rng(options.seed, Purpose::sampling, i, drawn);
    next.push_back(choose(std::span(all).subspan(next.size() * classes, classes), whole[i],
                          options.sampling, rng));
  }
  return next;
}

}  // namespace

std::vector<std::int32_t> predict(Decoder& decoder, const Batch& batch) {
  const Input input = make_input(decoder.backend(), batch);
  const Var logits = decoder.logits(decoder.features(input), batch.head);
  return likeliest(logits.value(), input.ids.size() * batch.groups);
}

std::vector<std::vector<std::int32_t>> generate(Decoder& decoder,
                                                std::span<const std::vector<std::int32_t>> prompts,
                                                const GenerateOptions& options) {
  const std::size_t count = prompts.size();
  std::vector<std::int64_t> left = checked_limits(prompts, options);
  std::vector<std::vector<std::int32_t>> whole(prompts.begin(), prompts.end());
  std::vector<std::vector<std::int32_t>> held = whole;  // tokens in the model's context
  const auto exceeds_context = [&](std::size_t i) {
    return options.context > 0 && std::ssize(held[i]) > options.context;
  };
  using Wanted = CachedDecoder::Wanted;
  const bool greedy = options.sampling.greedy() && !options.probabilities;
  for (;;) {
    std::vector<std::int32_t> tokens, fresh(count), capacities(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (left[i] <= 0) continue;  // this sequence is finished
      if (exceeds_context(i)) drop_oldest(held[i], left[i], options, i);
      tokens.insert(tokens.end(), held[i].begin(), held[i].end());
      fresh[i] = static_cast<std::int32_t>(held[i].size());
      std::int64_t capacity = std::ssize(held[i]) + left[i] - 1;
      if (options.context > 0) capacity = std::min(capacity, options.context);
      capacities[i] = static_cast<std::int32_t>(capacity);
    }
    if (tokens.empty()) return answers_of(whole, prompts);

    CachedDecoder reader(decoder, capacities, options.head,
                         greedy ? Wanted::likeliest : Wanted::logits);
    const auto positions = [&] {
      std::vector<std::int32_t> all;
      for (std::size_t i = 0; options.positions && i < count; ++i) {
        if (fresh[i] == 0) continue;
        const auto own = options.positions(i, held[i], capacities[i]);
        LONGHAND_CHECK(own.size() == held[i].size(), "decoding: expected ", held[i].size(),
                       " positions, one for each token, got ", own.size());
        all.insert(all.end(), own.end() - fresh[i], own.end());
      }
      return all;
    };
    // Continues the sequences until each one is finished or has filled the context.
    while (!tokens.empty()) {
      const Tensor read =
          reader.read({.tokens = tokens, .lengths = fresh, .positions = positions()});
      const std::vector<Choice> next =
          greedy ? likeliest_choices(read) : drawn_choices(read, fresh, whole, prompts, options);
      tokens.clear();
      std::size_t row = 0;
      for (std::size_t i = 0; i < count; ++i) {
        if (fresh[i] == 0) continue;
        const Choice choice = next[row++];
        whole[i].push_back(choice.token);
        held[i].push_back(choice.token);
        const bool wanted = !options.said || options.said(i, choice);
        const bool stopped = std::ranges::count(options.stops, choice.token) > 0;
        left[i] = wanted && !stopped ? left[i] - 1 : 0;
        fresh[i] = left[i] > 0 && !exceeds_context(i) ? 1 : 0;
        if (fresh[i] != 0) tokens.push_back(choice.token);
      }
    }
  }
}

std::vector<std::vector<std::int32_t>> decode_asked(
    Decoder& decoder, std::span<const std::vector<std::int32_t>> sequences,
    std::span<const std::vector<std::int32_t>> asked, std::int64_t head,
    std::span<const std::vector<ReferencePair>> reference,
    std::span<const std::vector<std::int32_t>> positions) {
  const std::size_t count = sequences.size();
  LONGHAND_CHECK(asked.size() == count, "decoding: expected outputs for ", count,
                 " sequences, got outputs for ", asked.size());
  LONGHAND_CHECK(reference.empty() || reference.size() == count,
                 "decoding: reference: expected one list of (row, position) pairs for each of the ",
                 count, " sequences, got ", reference.size(), " lists");
  LONGHAND_CHECK(positions.empty() || positions.size() == count,
                 "decoding: expected positions for ", count, " sequences, got positions for ",
                 positions.size());
  std::vector<std::int32_t> capacities, read(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::int32_t last = -1;
    for (const std::int32_t output : asked[i]) {
      LONGHAND_CHECK(output > last && output < static_cast<std::int32_t>(sequences[i].size()),
                     "decoding: expected outputs at ascending positions among the ",
                     sequences[i].size(), " tokens of sequence ", i, ", got ", output, " after ",
                     last);
      last = output;
    }
    capacities.push_back(last + 1);
  }
  CachedDecoder reader(decoder, capacities, head, CachedDecoder::Wanted::likeliest);
  std::vector<std::vector<std::int32_t>> said(count);
  while (true) {
    // In each pass, the decoder reads every sequence up to its next requested output.
    std::vector<std::int32_t> tokens, places, fresh(count);
    std::vector<ReferencePair> looks;
    for (std::size_t i = 0; i < count; ++i) {
      if (said[i].size() == asked[i].size()) continue;
      const std::int32_t end = asked[i][said[i].size()] + 1;
      if (!reference.empty()) {
        const auto first = static_cast<std::int32_t>(tokens.size()) - read[i];
        for (const ReferencePair& pair : reference[i]) {
          if (pair.row >= read[i] && pair.row < end)
            looks.push_back({first + pair.row, pair.position});
        }
      }
      for (std::int32_t t = read[i]; t < end; ++t) {
        const bool own = !said[i].empty() && t == asked[i][said[i].size() - 1] + 1;
        tokens.push_back(own ? said[i].back() : sequences[i][static_cast<std::size_t>(t)]);
      }
      if (!positions.empty()) {
        places.insert(places.end(), positions[i].begin() + read[i], positions[i].begin() + end);
      }
      fresh[i] = end - read[i];
      read[i] = end;
    }
    if (tokens.empty()) return said;
    const auto next = reader.read({tokens, fresh, looks, places}).to_ints();
    std::size_t row = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (fresh[i] > 0) said[i].push_back(next[row++]);
    }
  }
}

}  // namespace longhand::nn
