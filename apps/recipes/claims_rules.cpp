#include <string>

#include "apps/recipes/claims.h"

/// The papers' claims. A bound that is printed as 1.00 becomes 0.995, because printed values are
/// rounded. A model is said to fail if it has at most half of the answers right.
namespace longhand::app {
namespace {

constexpr double perfect = 0.995, fails = 0.5;

constexpr std::string_view flip_flop = "fal-table1-laptop",
                           cycle = "fal-table1-cycle-tracing-laptop",
                           long_cycle = "fal-table1-cycle-tracing-extended",
                           chains = "chacal-table1-laptop", long_chains = "chacal-table1-extended",
                           boxes = "chacal-table2-laptop", long_boxes = "chacal-table2-extended";
constexpr std::string_view gpt = "GPT + RoPE", fal_gpt = "FAL-GPT + RoPE";

std::vector<Claim> first_after_last() {
  const auto traces = [](std::string_view model, std::string_view column, double bound) {
    return std::vector<std::vector<ClaimCondition>>{{at_least({long_cycle, model, column}, bound)},
                                                    {at_least({cycle, model, column}, bound)}};
  };
  const auto leads = [](std::string_view column) {
    return std::vector<std::vector<ClaimCondition>>{
        {above({long_cycle, fal_gpt, column}, {long_cycle, gpt, column})},
        {above({cycle, fal_gpt, column}, {cycle, gpt, column})}};
  };
  return {
      {"F1",
       "a model with a FAL head is perfect on Flip-Flop out of distribution",
       {{"sparse", {{at_least({flip_flop, fal_gpt, "FFL F(0.98)"}, perfect)}}},
        {"twice as long", {{at_least({flip_flop, fal_gpt, "FFL len 1024"}, perfect)}}}},
       10},
      {"F2",
       "GPT learns Flip-Flop and fails out of distribution",
       {{"fits", {{at_least({flip_flop, gpt, "FFL F(0.6)"}, perfect)}}},
        {"fails",
         {{at_most({flip_flop, gpt, "FFL F(0.98)"}, fails),
           at_most({flip_flop, gpt, "FFL len 1024"}, fails)}}}}},
      {"F3",
       "both models learn Cycle Tracing",
       {{"GPT", traces(gpt, "CT train", perfect)}, {"FAL", traces(fal_gpt, "CT train", perfect)}}},
      {"F4",
       "the FAL model traces cycles 4 and 8 times longer, GPT does not",
       {{"4 times", traces(fal_gpt, "CT 4x", perfect)},
        {"8 times", traces(fal_gpt, "CT 8x", 0.99)},
        {"above GPT at 4 times", leads("CT 4x")},
        {"above GPT at 8 times", leads("CT 8x")}}},
      {"F5",
       "a FAL head selects the last write or read (Figure 2)",
       {{"the best head", {{at_least({"fal-figure2-laptop", "layer *", "FFL F(0.98)"}, 0.98)}}}},
       10}};
}

std::vector<Claim> chacal() {
  const auto solves = [](std::string_view row) {
    return std::vector<std::vector<ClaimCondition>>{
        {at_least({long_chains, row, "accuracy"}, perfect)},
        {at_least({chains, row, "accuracy"}, perfect)}};
  };
  const auto better = [](std::string_view page, std::string_view more, std::string_view row,
                         std::string_view other, std::string_view column) {
    return std::vector<std::vector<ClaimCondition>>{
        {above({more, row, column}, {more, other, column})},
        {above({page, row, column}, {page, other, column})}};
  };
  const auto deeper = [&](std::string_view row, std::string_view other) {
    return better(chains, long_chains, row, other, "accuracy");
  };
  const auto beats = [&](std::string_view other) {
    return better(boxes, long_boxes, "ChaCAL, L = 2", other, "Advanced exact match");
  };
  const auto gammas = [](std::string_view page) {
    const auto perfect_at = [=](std::string_view row) {
      return at_least({page, row, "accuracy"}, perfect);
    };
    return std::vector<ClaimCondition>{perfect_at("gamma 0.5"), perfect_at("gamma 0.7"),
                                       perfect_at("gamma 0.9")};
  };
  const auto soonest = [](std::string_view page) {
    const auto later = [=](std::string_view row) {
      return above({page, row, "steps to 100%"}, {page, "gamma 0.9", "steps to 100%"});
    };
    return std::vector<ClaimCondition>{later("gamma 0.5"), later("gamma 0.7"), later("gamma 0.98")};
  };
  constexpr std::string_view fig5 = "chacal-fig5-laptop", long_fig5 = "chacal-fig5-extended";
  constexpr std::string_view language = "chacal-table3-laptop", perplexity = "Perplexity";
  return {
      {"C1", "one ChaCAL layer solves chains of references", {{"ChaCAL", solves("ChaCAL L=1")}}},
      {"C2",
       "a standard model needs four to five layers for such chains",
       {{"2 layers above 1", deeper("Standard L=2", "Standard L=1")},
        {"3 above 2", deeper("Standard L=3", "Standard L=2")},
        {"4 above 3", deeper("Standard L=4", "Standard L=3")},
        {"5 above 3", deeper("Standard L=5", "Standard L=3")},
        {"5 solve them", solves("Standard L=5")}}},
      {"C3",
       "on boxes two layers with ChaCAL beat two to five standard layers",
       {{"2 layers", beats("Standard, L = 2")},
        {"3 layers", beats("Standard, L = 3")},
        {"4 layers", beats("Standard, L = 4")},
        {"5 layers", beats("Standard, L = 5")}}},
      {"C4",
       "with ChaCAL a language model has nearly the same perplexity",
       {{"better than before fine-tuning",
         {{above({language, "GPT-2 (pre-trained)", perplexity},
                 {language, "GPT-2 + ChaCAL (fine-tuned)", perplexity})}}},
        // The paper reports a difference in loss of 0.063 nats per token of GPT-2, which is about
        // 4.3 bytes long. The tokens of this page are bytes.
        {"0.1 nats a token of GPT-2 above the standard model, 0.023 a byte",
         {{at_most({language, "GPT-2 + ChaCAL (fine-tuned)", "loss beside the fine-tuned one's"},
                   0.023)}}}}},
      {"C5",
       "accuracy is perfect from gamma 0.5 on, and is perfect soonest at 0.9",
       {{"perfect", {gammas(long_fig5), gammas(fig5)}},
        {"soonest", {soonest(long_fig5), soonest(fig5)}}}}};
}

std::vector<Claim> hinting() {
  constexpr std::string_view sizes = "hinting-fig3.2-laptop", depths = "hinting-fig3.3-laptop",
                             inside = "hinting-fig4.15-laptop", increment = "hinting-table3-laptop",
                             theorem = "hinting-theorem5.1-laptop";
  constexpr std::string_view at_50 = "length 50", at_100 = "length 100";
  const auto hinted = [](std::string_view page) {
    return std::vector<ClaimCondition>{
        above({page, "hinting", "length 100"}, {page, "no hinting", "length 100"}),
        at_least({page, "hinting", "length 100"}, 0.5)};
  };
  const auto order = [](std::string_view row, std::string_view other) {
    const auto at = [&](std::string_view page, std::string_view column) {
      return above({page, row, column}, {page, other, column});
    };
    return std::vector<std::vector<ClaimCondition>>{{at("hinting-fig3.11-extended", "length 50")},
                                                    {at("hinting-fig3.11-laptop", "length 50")}};
  };
  const auto tempered = [](std::string_view page, std::string_view laptop, std::string_view row) {
    const auto at = [&](std::string_view one) {
      return std::vector<ClaimCondition>{
          above({one, row, "Tempered softmax"}, {one, row, "Standard softmax"})};
    };
    return std::vector<std::vector<ClaimCondition>>{at(page), at(laptop)};
  };
  const auto digits = [=](std::string_view row, std::string_view other) {
    std::vector<ClaimCondition> all;
    for (const char* column : {"12", "14", "16"}) {
      all.push_back(above({increment, row, column}, {increment, other, column}));
    }
    return std::vector<std::vector<ClaimCondition>>{all};
  };
  constexpr std::string_view table1 = "hinting-table1-extended", table2 = "hinting-table2-extended";
  constexpr std::string_view small1 = "hinting-table1-laptop", small2 = "hinting-table2-laptop";
  return {
      {"H1",
       "without hints, more data and more depth help at length 50 but not at 100",
       {{"data", {{above({sizes, "160M", at_50}, {sizes, "1M", at_50})}}},
        {"depth", {{above({depths, "depth 4", at_50}, {depths, "depth 2", at_50})}}},
        {"not at 100",
         {{at_most({sizes, "160M", at_100}, 0.05), at_most({depths, "depth 4", at_100}, 0.05)}}}}},
      {"H2",
       "models with the successor hint sort 100 numbers, models without a hint do not",
       {{"with repetitions",
         {hinted("hinting-fig3.6-extended"), hinted("hinting-fig3.6-laptop")}}}},
      {"H3",
       "the order of hints is successor, fill, none, count, from best to worst",
       {{"successor above fill", order("successor", "fill")},
        {"fill above none", order("fill", "no hint")},
        {"none above count", order("no hint", "count")}}},
      {"H4",
       "tempered softmax helps with and without hints",
       {{"no hint, 50", tempered(table1, small1, "Test Acc. 50")},
        {"no hint, 100", tempered(table1, small1, "Test Acc. 100")},
        {"hint, 50", tempered(table2, small2, "Test Acc. 50")},
        {"hint, 100", tempered(table2, small2, "Test Acc. 100")},
        {"a million samples",
         {{above({"hinting-tempered-laptop", "1M, tempered", at_50},
                 {"hinting-tempered-laptop", "1M, standard", at_50})}}}}},
      {"H5",
       "the hint makes both mechanisms inside the model more accurate",
       {{"minimum", {{above({inside, "hinting, min", at_50}, {inside, "no hinting, min", at_50})}}},
        {"identity and successor",
         {{above({inside, "hinting, Identity+Successor", at_50},
                 {inside, "no hinting, Identity+Successor", at_50})}}}}},
      {"H6",
       "adding one: tempered softmax is better than the carry hint, and the carry hint is better "
       "than none",
       {{"hint above none", digits("Hinting", "Standard")},
        {"tempered above hint", digits("Temp. softmax", "Hinting")}}},
      {"H7",
       "the construction of Theorem 5.1 sorts at every length",
       {{"f32", {{at_least({theorem, "all lengths", "f32 on cpu"}, 1)}}},
        {"f64", {{at_least({theorem, "all lengths", "f64 on reference"}, 1)}}}},
       1}};
}

std::vector<Claim> attention_span() {
  // Uses the page of a pretrained model, as in the paper, if that page exists. Otherwise uses the
  // page of small models trained from scratch.
  const auto either = [](const std::string& recipe, const auto& conditions) {
    std::vector<std::vector<ClaimCondition>> settings;
    for (const char* ending : {"-smollm2-laptop", "-laptop"}) {
      settings.push_back(conditions(std::string("attentionspan-").append(recipe).append(ending)));
    }
    return settings;
  };
  using Conditions = std::vector<ClaimCondition>;
  const auto right = [&](std::string_view row) {
    return either("table3", [=](const std::string& page) {
      return Conditions{above({page, row, "right, %"}, {page, row, "wrong, %"})};
    });
  };
  const auto gain = [&](std::string_view row, double bound) {
    return either("fig2", [=](const std::string& page) {
      return Conditions{at_least({page, row, "mean gain"}, bound)};
    });
  };
  const auto restored = [&](std::string_view row) {
    return either("sec6.2", [=](const std::string& page) {
      return Conditions{at_least({page, row, "OOD with heads"}, 90)};
    });
  };
  return {
      {"A1",
       "wrong predictions have less attention on the reference tokens",
       {{"reversal", right("String Reversal, OOD")},
        {"value assignment", right("Value Assignment, OOD")}}},
      {"A2",
       "attention is as sharp out of distribution as in distribution",
       {{"addition", either("table4",
                            [](const std::string& page) {
                              return Conditions{within({page, "Long Addition, OOD", "Mean entropy"},
                                                       {page, "Long Addition, ID", "Mean entropy"},
                                                       0.2)};
                            })}}},
      {"A3",
       "reinforcement gains about 90 points in reversal, 40 to 50 in value assignment",
       {{"reversal", gain("String Reversal", 80)},
        {"value assignment", gain("Value Assignment", 40)}}},
      {"A4",
       "training one column of W_Q and W_K restores addition, and its control fails",
       {{"restored", either("sec6.4",
                            [](const std::string& page) {
                              return Conditions{at_least({page, "Long Addition", "OOD after"}, 75)};
                            })},
        {"control", either("sec6.4",
                           [](const std::string& page) {
                             return Conditions{
                                 above({page, "Long Addition", "OOD after"},
                                       {page, "Long Addition, control", "OOD after"}),
                                 at_most({page, "Long Addition, control", "OOD after"}, 10)};
                           })}}},
      {"A5",
       "auxiliary heads restore every task",
       {{"reversal", restored("String Reversal")},
        {"addition", restored("Long Addition")},
        {"multiplication", restored("Long Multiplication")},
        {"FFML", restored("FFML")},
        {"value assignment", restored("Value Assignment")},
        {"successor", restored("Successor")}}},
      {"A6",
       "switching rotary positions off at inference does no harm in distribution",
       {{"reversal", either("sec6.5", [](const std::string& page) {
           return Conditions{within({page, "String Reversal", "ID as trained"},
                                    {page, "String Reversal", "ID without RoPE"}, 5)};
         })}}}};
}

}  // namespace

std::span<const Claim> claims() {
  static const std::vector<Claim> all = [] {
    std::vector<Claim> claims;
    for (auto& paper : {first_after_last(), chacal(), hinting(), attention_span()}) {
      claims.insert(claims.end(), paper.begin(), paper.end());
    }
    return claims;
  }();
  return all;
}

}  // namespace longhand::app
