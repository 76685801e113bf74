#include "tasks/boxes.h"

#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include "tests/check.h"

#include "core/error.h"
#include "tasks/boxes_world.h"
#include "tests/chi_square.h"
#include "tests/make_task.h"
#include "tests/refusal.h"
#include "tests/replaced.h"

BOOST_AUTO_TEST_SUITE(boxes_test)

using namespace longhand;
using namespace longhand::tasks;

namespace {

constexpr TaskMaker make{boxes};

const TaskOptions advanced{{"version", "advanced"}};

/// The samples printed in the ChaCAL paper.
const std::string default_prompt =
    "The radio is in Box D, the bone and the clock and the television are in Box C, the bill and "
    "the computer and the tea are in Box B, there is nothing in Box E, the ice and the plant are "
    "in Box A, the game is in Box G, there is nothing in Box F. Move the computer and the tea from "
    "Box B to Box E. Put the milk into Box A. Put the cake into Box B. Remove the computer from "
    "Box E. Move the bone and the television from Box C to Box E. Remove the radio from Box D. "
    "Remove the bill from Box B. Remove the cake from Box B. Move the contents of Box E to Box F. "
    "Put the drug and the map into Box D. Move the contents of Box G to Box D. Move the tea from "
    "Box F to Box C. Move the tea from Box C to Box B. Move the ice from Box A to Box G. Remove "
    "the tea from Box B. Move the map from Box D to Box A. Move the drug from Box D to Box E. Move "
    "the contents of Box G to Box D. Move the contents of Box E to Box D. Remove the game and the "
    "ice from Box D. Put the cake into Box G. Put the disk into Box F. Remove the clock from Box "
    "C. Remove the drug from Box D. Remove the bone from Box F. Put the bell into Box E. Put the "
    "stone into Box F. Move the contents of Box G to Box C. Move the stone and the television from "
    "Box F to Box B. Put the magazine into Box G. Remove the disk from Box F. Remove the "
    "television from Box B.";
const std::string default_answer =
    "Box A contains the map and the milk and the plant, Box B contains the stone, Box C contains "
    "the cake, Box D is empty, Box E contains the bell, Box F is empty, Box G contains the "
    "magazine.";
const std::string advanced_prompt =
    "The television is in Box A, the cigarette is in Box B, the machine is in Box C, the cream is "
    "in Box H. Move the contents of Box B to Box F. Move the contents of Box F to Box E. Put the "
    "sheet into Box C. Remove the sheet from Box C. Put the coat into Box A. Remove the coat from "
    "Box A. Move the contents of Box H to Box F. Move the contents of Box E to Box G. Move the "
    "contents of Box G to Box E. Move the contents of Box A to Box D. Move the contents of Box D "
    "to Box G. Move the contents of Box C to Box D. Move the contents of Box G to Box C.";
const std::string advanced_answer =
    "Box C contains the television, Box D contains the machine, Box E contains the cigarette, Box "
    "F contains the cream.";

/// Two further samples of the task `boxes` with six operations each: one of the default version
/// (short_prompt), and one of the advanced version (small_prompt).
const std::string short_prompt =
    "There is nothing in Box G, the radio and the shell are in Box D, the cash and the fig are in "
    "Box A, the stone and the watch are in Box E, the clock and the coffee and the plate are in "
    "Box F, the bowl and the magazine and the map are in Box C, the key is in Box B. Remove the "
    "key from Box B. Move the fig from Box A to Box B. Remove the radio and the shell from Box D. "
    "Put the glass and the shoe into Box G. Move the contents of Box A to Box E. Remove the clock "
    "from Box F.";
const std::string short_answer =
    "Box A is empty, Box B contains the fig, Box C contains the bowl and the magazine and the map, "
    "Box D is empty, Box E contains the cash and the stone and the watch, Box F contains the "
    "coffee and the plate, Box G contains the glass and the shoe.";
const std::string small_prompt =
    "The painting is in Box A, the rose is in Box D, the wheel is in Box G, the dress is in Box H. "
    "Move the contents of Box D to Box F. Move the contents of Box F to Box E. Move the contents "
    "of Box E to Box B. Put the plane into Box G. Put the cream into Box B. Remove the rose from "
    "Box B.";
const std::string small_answer =
    "Box A contains the painting, Box B contains the cream, Box G contains the plane and the "
    "wheel, Box H contains the dress.";

/// The words of a sentence, where commas and full stops count as words. The text of a sample
/// consists of a sentence with the initial contents, a sentence for each operation, and the answer.
using Sentence = std::vector<std::string>;
std::vector<Sentence> sentences_of(const Task& task, const Sample& sample) {
  std::vector<Sentence> sentences{{}};
  for (const std::int32_t token : sample.tokens) {
    const std::string& text = task.vocabulary().text(token);
    if (text.front() == '<' || text[1] == '<') continue;
    sentences.back().push_back(text.front() == ' ' ? text.substr(1) : text);
    if (text == ".") sentences.emplace_back();
  }
  sentences.pop_back();
  return sentences;
}

bool is_object(const std::string& word) {
  static const std::set<std::string> grammar{"the",      "is",      "in",   "and",     "are",
                                             "there",    "nothing", "from", "to",      "into",
                                             "contents", "empty",   "of",   "contains"};
  return std::islower(static_cast<unsigned char>(word[0])) && !grammar.contains(word);
}

std::vector<std::string> objects_in(const Sentence& sentence) {
  std::vector<std::string> objects;
  std::ranges::copy_if(sentence, std::back_inserter(objects), is_object);
  return objects;
}

std::vector<char> boxes_in(const Sentence& sentence) {
  std::vector<char> letters;
  for (std::size_t i = 1; i < sentence.size(); ++i) {
    if (sentence[i - 1] == "Box") letters.push_back(sentence[i][0]);
  }
  return letters;
}

/// Computes the final box of each object by following each object separately. Unlike the task, this
/// function stores no contents of boxes.
std::map<std::string, char> follow(const std::vector<Sentence>& sentences) {
  std::map<std::string, char> place;  // the box of each object; '-': in no box
  Sentence clause;
  for (const std::string& word : sentences.front()) {
    clause.push_back(word);
    if (word != "," && word != ".") continue;
    for (const std::string& object : objects_in(clause)) place[object] = boxes_in(clause).at(0);
    clause.clear();
  }
  for (std::size_t i = 1; i + 1 < sentences.size(); ++i) {
    const Sentence& s = sentences[i];
    const std::vector<char> letters = boxes_in(s);
    for (const std::string& object : objects_in(s)) {
      place[object] = s[0] == "Remove" ? '-' : letters.back();
    }
    if (s[2] != "contents") continue;
    for (auto& [object, box] : place) box = box == letters[0] ? letters[1] : box;
  }
  std::erase_if(place, [](const auto& entry) { return entry.second == '-'; });
  return place;
}

std::map<std::string, char> answered(const Sentence& answer) {
  std::map<std::string, char> place;
  char box = 0;
  for (std::size_t i = 0; i < answer.size(); ++i) {
    if (answer[i] == "Box") box = answer[++i][0];
    if (is_object(answer[i])) place[answer[i]] = box;
  }
  return place;
}

/// Statistics over many samples of the task boxes.
struct Counts {
  double implicit = 0, explicit_ = 0, put = 0, remove = 0;
  std::vector<double> put_sizes = std::vector<double>(4);
  std::vector<double> first_sizes = std::vector<double>(4), last_sizes = std::vector<double>(4);
  // Entry n is the number of samples with n boxes that are not empty at the end.
  std::vector<double> occupied = std::vector<double>(9);
  std::map<std::size_t, double> lengths;
  double prompt = 0, answer = 0;  // mean numbers of tokens, without special tokens
  std::set<std::string> words;
  double samples = 0;

  double operations() const { return implicit + explicit_ + put + remove; }
};

Counts count(const Task& task, std::size_t boxes, std::uint32_t samples) {
  Counts counts;
  counts.samples = samples;
  for (std::uint32_t index = 0; index < samples; ++index) {
    const Sample sample = draw(task, index);
    const std::vector<Sentence> sentences = sentences_of(task, sample);
    for (const Sentence& s : sentences) counts.words.insert(s.begin(), s.end());
    for (std::size_t i = 1; i + 1 < sentences.size(); ++i) {
      const Sentence& s = sentences[i];
      if (s[0] == "Move") ++(s[2] == "contents" ? counts.implicit : counts.explicit_);
      if (s[0] == "Remove") ++counts.remove;
      if (s[0] == "Put") ++counts.put, ++counts.put_sizes.at(objects_in(s).size());
    }
    counts.lengths[sentences.size() - 2] += 1;
    const auto sizes = [&](const std::map<std::string, char>& place) {
      std::vector<std::size_t> list(boxes);
      for (const auto& [object, box] : place) ++list.at(static_cast<std::size_t>(box - 'A'));
      return list;
    };
    for (const std::size_t n : sizes(follow({sentences[0], {}}))) ++counts.first_sizes.at(n);
    const auto last = sizes(answered(sentences.back()));
    for (const std::size_t n : last) ++counts.last_sizes.at(n);
    ++counts.occupied.at(boxes - static_cast<std::size_t>(std::ranges::count(last, 0u)));
    const double answer = static_cast<double>(sentences.back().size());
    counts.answer += answer / samples;
    counts.prompt += (static_cast<double>(sample.tokens.size()) - answer - 3) / samples;
  }
  return counts;
}

void near(double value, double expected, double tolerance) {
  BOOST_TEST(std::abs(value - expected) <= tolerance,
             value << " is farther than " << tolerance << " from " << expected);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_printed_samples_are_right) {
  BOOST_TEST(!make()->check(default_prompt, default_answer).has_value());
  BOOST_TEST(make()->answer(default_prompt) == " " + default_answer + " <end>");
  BOOST_TEST(!make(advanced)->check(advanced_prompt, advanced_answer).has_value());
  BOOST_TEST(make(advanced)->answer(advanced_prompt) == " " + advanced_answer + " <end>");
  // A sample of the default version is invalid in the advanced version, and vice versa.
  BOOST_TEST(make(advanced)->check(default_prompt, default_answer).has_value());
  BOOST_TEST(make()->check(advanced_prompt, advanced_answer).has_value());
  const auto tokens = [](const Task& task, const std::string& text) {
    return task.vocabulary().encode(" " + text).size();
  };
  BOOST_TEST(tokens(*make(), default_prompt) == 342u);
  BOOST_TEST(tokens(*make(), default_answer) == 46u);
  BOOST_TEST(tokens(*make(advanced), advanced_prompt) == 146u);
  BOOST_TEST(tokens(*make(advanced), advanced_answer) == 24u);
}

BOOST_AUTO_TEST_CASE(shorter_samples_are_right_if_the_options_allow_them) {
  const auto six = make({{"operations", "6"}});
  BOOST_TEST(!six->check(short_prompt, short_answer).has_value());
  BOOST_TEST(make()->check(short_prompt, short_answer).value() == "expected 32 operations, got 6");
  BOOST_TEST(!make(advanced)->check(small_prompt, small_answer).has_value());
  // Special tokens around prompt and answer are ignored.
  BOOST_TEST(!six->check("<begin> " + short_prompt + " <answer>", " " + short_answer + " <end>")
                  .has_value());
}

BOOST_AUTO_TEST_CASE(contradictions_to_the_state_or_the_rules_are_reported) {
  const auto task = make({{"operations", "6"}});
  const auto reason = [&](std::string_view what, std::string_view with) {
    return task->check(replaced(short_prompt, what, with), short_answer).value_or("right");
  };
  BOOST_TEST(reason("the radio and the shell are", "the radio and the shell is") ==
             "sentence 1: expected \"are\", got \"is\"");
  BOOST_TEST(reason("the key is", "the key are") == "sentence 1: expected \"is\", got \"are\"");
  BOOST_TEST(reason("the radio and the shell are", "the shell and the radio are") ==
             "sentence 1: expected objects in alphabetical order, got the radio after the shell");
  BOOST_TEST(reason("in Box B. R", "in Box A. R") == "sentence 1: Box A is described twice");
  BOOST_TEST(reason(", the key is in Box B.", ".") ==
             "sentence 1: expected 7 clauses, one for each box, got 6");
  BOOST_TEST(reason("in Box B.", "in Box B, the rose is in Box A.") ==
             "sentence 1: expected at most 7 clauses, one for each box, got more");
  BOOST_TEST(reason("the key is", "the fig is") == "sentence 1: the fig is in a box already");
  BOOST_TEST(reason("the map are", "the map and the tea are") ==
             "sentence 1: expected at most 3 objects in Box C, got 4");
  BOOST_TEST(reason("the key is", "the lamp is") == "sentence 1: expected an object, got \"lamp\"");
  BOOST_TEST(reason("There is", "there is") ==
             "sentence 1: expected a sentence that begins with \"The\" or \"There\", got "
             "\"there is nothing in Box G, the radio and the shell are in Bo...\"");
  BOOST_TEST(reason("Remove the key from Box B", "Remove the key from Box A") ==
             "operation 1: the key is not in Box A");
  BOOST_TEST(reason("Remove the key from Box B", "Move the contents of Box G to Box A") ==
             "operation 1: Box G is empty");
  BOOST_TEST(reason("Remove the key from Box B", "Move the contents of Box B to Box B") ==
             "operation 1: expected two different boxes, got Box B twice");
  BOOST_TEST(reason("Remove the key from Box B", "Put the fig into Box G") ==
             "operation 1: the fig is in a box already");
  BOOST_TEST(reason("Remove the key from Box B", "Move the key from Box B to Box A") ==
             "operation 1: expected the words \"the contents of\", because all objects of Box B "
             "are moved");
  BOOST_TEST(reason("Remove the key from Box B", "Put the egg into Box C") ==
             "operation 1: expected at most 3 objects in Box C, got 4");
  BOOST_TEST(reason("Remove the key from Box B", "Remove the contents of Box B") ==
             "operation 1: expected an object, got \"contents\"");
  BOOST_TEST(reason("Remove the key from Box B", "Remove the key from Box H") ==
             "operation 1: expected a box from A to G, got \"H\"");
  BOOST_TEST(reason("Remove the key from Box B", "Drop the key from Box B") ==
             "operation 1: expected \"Move\", \"Remove\" or \"Put\", got \"Drop\"");
  BOOST_TEST(reason("Put the glass and the shoe into", "Put the shoe and the glass into") ==
             "operation 4: expected objects in alphabetical order, got the glass after the shoe");
  BOOST_TEST(reason("Put the glass and the shoe into", "Put the glass into the shoe") ==
             "operation 4: expected \"Box\", got \"the\"");
  BOOST_TEST(reason("Box D. Put", "Box D.  Put") ==
             "operation 4: expected \"Move\", \"Remove\" or \"Put\", got \"\"");
  BOOST_TEST(reason("Box D. Put", "Box D.Put").find("operation 3: expected a space") == 0);
  BOOST_TEST(reason("Remove the clock from Box F.", "Remove the clock from Box F") ==
             "operation 6: expected a full stop, got \"Remove the clock from Box F\"");
  BOOST_TEST(reason(" Remove the clock from Box F.", "") == "expected 6 operations, got 5");
  BOOST_TEST(reason("from Box F.", "from Box F. Put the egg into Box F.") ==
             "expected at most 6 operations, got more");
  BOOST_CHECK_THROW(task->answer("nonsense"), Error);
  BOOST_CHECK_THROW(task->answer(""), Error);
}

BOOST_AUTO_TEST_CASE(violations_of_the_advanced_version_are_reported) {
  const auto task = make(advanced);
  const auto reason = [&](std::string_view what, std::string_view with) {
    return task->check(replaced(small_prompt, what, with), small_answer).value_or("right");
  };
  const std::string_view first = "Move the contents of Box D to Box F";
  BOOST_TEST(reason(first, "Move the rose from Box D to Box F") ==
             "operation 1: expected \"Move the contents of\" and a box, got the names of objects");
  BOOST_TEST(reason(first, "Move the contents of Box D to Box A") ==
             "operation 1: expected 4 non-empty boxes after this operation, got 3");
  BOOST_TEST(reason(first, "Put the egg into Box F") ==
             "operation 1: expected 4 non-empty boxes after this operation, got 5");
  BOOST_TEST(reason(first, "Remove the rose from Box D") ==
             "operation 1: expected 4 non-empty boxes after this operation, got 3");
  BOOST_TEST(reason("The painting is in Box A, the rose is", "The rose is") ==
             "sentence 1: expected 4 non-empty boxes, got 3");
  BOOST_TEST(reason("The painting is", "There is nothing in Box B, the painting is") ==
             "sentence 1: expected \"the\", got \"there\"");
  BOOST_TEST(reason("The painting is", "The egg and the painting are") ==
             "sentence 1: expected one object in Box A, got 2");
  BOOST_TEST(
      task->check(replaced(small_prompt, first, first), "Box A contains the painting.").value() ==
      "answer: no clause mentions Box B, which holds the cream");
  const auto start = small_prompt.substr(0, small_prompt.find('.') + 1);
  BOOST_TEST(task->check(start, "Box A contains the painting.").value() ==
             "expected at least 1 operation, got 0");
}

BOOST_AUTO_TEST_CASE(wrong_answers_and_wrong_wording_have_different_errors) {
  const auto task = make({{"operations", "6"}});
  const auto reason = [&](std::string_view what, std::string_view with) {
    return task->check(short_prompt, replaced(short_answer, what, with)).value_or("right");
  };
  BOOST_TEST(reason("Box A is empty", "Box A is empty") == "right");
  BOOST_TEST(reason("the fig", "the key") == "answer: Box B: expected the fig, got the key");
  BOOST_TEST(reason("B contains the fig", "B is empty") ==
             "answer: Box B: expected the fig, got nothing");
  BOOST_TEST(reason("Box D is empty, ", "") ==
             "answer: no clause mentions Box D, which holds nothing");
  BOOST_TEST(reason("the coffee and the plate", "the plate and the coffee") ==
             "answer: expected objects in alphabetical order, got the coffee after the plate");
  BOOST_TEST(reason("Box A is empty, Box B", "Box B is empty, Box A") ==
             "answer: expected boxes in alphabetical order, got Box A after Box B");
  BOOST_TEST(reason("B contains", "B contain") == "answer: expected \"contains\", got \"contain\"");
  BOOST_TEST(reason("the shoe.", "the shoe") ==
             task->check(short_prompt, short_answer.substr(0, short_answer.size() - 1)).value());
  BOOST_TEST(reason("the shoe.", "the shoe. ").find("answer: expected a space and another") == 0);
  BOOST_TEST(reason("the shoe.", "the shoe. Box A is empty.") ==
             "answer: expected one sentence, got more");
  BOOST_TEST(reason("the shoe.", "the shoe, ").find("answer: expected a full stop") == 0);
  BOOST_TEST(task->check(short_prompt, "").value() == "answer: expected a full stop, got \"\"");
  BOOST_TEST(task->check(short_prompt, ".").value() == "answer: expected \"Box\", got \"\"");
}

BOOST_AUTO_TEST_CASE(any_input_gives_a_verdict_of_one_line) {
  const auto task = make({{"operations", "6"}});
  const auto line = [&](std::string_view prompt, std::string_view answer) {
    const std::string said = task->check(prompt, answer).value_or("right");
    BOOST_REQUIRE(said.find('\n') == std::string::npos);
    BOOST_REQUIRE(said.size() < 300);
    return said;
  };
  int right = 0;
  for (std::uint32_t index = 0; index < 3000; ++index) {
    Rng rng(8, Purpose::test, 0, index);
    std::string prompt = short_prompt, answer = short_answer;
    std::string& text = rng.chance(.5) ? prompt : answer;
    for (std::uint32_t n = rng.below(3) + 1; n > 0; --n) {
      const std::size_t at = rng.below(static_cast<std::uint32_t>(text.size()));
      if (rng.chance(.3))
        text.erase(at, rng.below(20));
      else if (rng.chance(.3))
        text.insert(at, text.substr(rng.below(static_cast<std::uint32_t>(text.size())), 20));
      else
        text[at] = static_cast<char>(rng.below(256));
    }
    const bool same = prompt == short_prompt && answer == short_answer;
    right += !same && line(prompt, answer) == "right";
  }
  BOOST_TEST(right == 0);
  const auto many = [](std::string_view part) {
    std::string text;
    while (text.size() < 2'000'000) text += part;
    return text;
  };
  for (const std::string_view part :
       {"the ", ", ", ".", ". ", " ", "Box A ", "\n", "There is nothing in Box A, "}) {
    line(many(part), short_answer);
    line(short_prompt, many(part));
    line(many(part) + ".", short_answer);
    line(short_prompt + " " + many(part) + ".", short_answer);
    line(short_prompt, many(part) + ".");
  }
  line(std::string(1, '\0'), std::string(1, '\0'));
  line("T", "");
  line("T.", ".");
}

BOOST_AUTO_TEST_CASE(the_vocabularies_have_the_paper_s_sizes) {
  BOOST_TEST(make()->vocabulary().size() == 132);
  BOOST_TEST(make(advanced)->vocabulary().size() == 128);
  BOOST_TEST(count(*make(), 7, 2000).words.size() == 129u);
  BOOST_TEST(count(*make(advanced), 8, 2000).words.size() == 125u);
}

BOOST_AUTO_TEST_CASE(following_each_object_gives_the_same_answer) {
  for (const TaskOptions& options :
       {TaskOptions{}, advanced, TaskOptions{{"version", "advanced"}, {"most-items", "3"}},
        TaskOptions{{"version", "advanced"}, {"occupied", "at-most"}, {"start-items", "poisson"}},
        TaskOptions{{"version", "advanced"}, {"occupied", "start"}, {"most-items", "4"}},
        TaskOptions{{"version", "advanced"}, {"kinds", "feasible"}, {"put-items", "one"}},
        TaskOptions{{"occupied", "exactly"}, {"kinds", "feasible"}},
        TaskOptions{
            {"lengths", "log-uniform"}, {"clauses", "ascending"}, {"start-items", "one"}}}) {
    const auto task = make(options);
    for (std::uint32_t index = 0; index < 200; ++index) {
      const Sample sample = draw(*task, index);
      const auto sentences = sentences_of(*task, sample);
      BOOST_REQUIRE((follow(sentences) == answered(sentences.back())));
      const auto [prompt, answer] = task->as_text(sample);
      const auto wrong = task->check(prompt, answer);
      BOOST_REQUIRE_MESSAGE(!wrong, wrong.value_or("") << ": " << prompt << answer);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_default_version_has_the_specified_distributions) {
  const Counts counts = count(*make(), 7, 2000);
  BOOST_TEST(counts.lengths.size() == 1u);
  BOOST_TEST(counts.operations() == 64'000);
  near(counts.implicit / counts.operations(), .1535, .01);
  near(counts.explicit_ / counts.operations(), .1466, .01);
  near(counts.put / counts.operations(), .2844, .01);
  near(counts.remove / counts.operations(), .4156, .01);
  for (const auto& [size, share] : {std::pair{1, .686}, {2, .260}, {3, .054}}) {
    near(counts.put_sizes.at(static_cast<std::size_t>(size)) / counts.put, share, .012);
  }
  const std::vector<double> poisson{.1353, .2707, .2707, .3233};
  BOOST_TEST(chi_square_p(counts.first_sizes, poisson) > 1e-3);
  const std::vector<double> last{.431, .252, .179, .139};
  const std::vector<double> occupied{.002, .024, .099, .225, .299, .232, .101, .018};
  for (std::size_t i = 0; i < 4; ++i) near(counts.last_sizes[i] / 14'000, last[i], .012);
  for (std::size_t i = 0; i < 8; ++i) near(counts.occupied[i] / 2000, occupied[i], .03);
  near(counts.prompt, 347.7, 1.2);  // the standard error of this mean of 2000 samples is 0.3
  near(counts.answer, 48.6, .6);
}

BOOST_AUTO_TEST_CASE(the_advanced_version_has_the_specified_distributions) {
  struct Expected {
    const char* most;
    double implicit, put, remove;
    std::vector<double> last;
  };
  for (const Expected& e : {Expected{"2", .566, .278, .156, {.5, .370, .130, 0}},
                            Expected{"3", .457, .357, .186, {.5, .328, .103, .070}}}) {
    const auto task = make({{"version", "advanced"}, {"most-items", e.most}});
    const Counts counts = count(*task, 8, 4000);
    BOOST_TEST(counts.explicit_ == 0);
    near(counts.implicit / counts.operations(), e.implicit, .012);
    near(counts.put / counts.operations(), e.put, .012);
    near(counts.remove / counts.operations(), e.remove, .012);
    for (std::size_t i = 0; i < 4; ++i) near(counts.last_sizes[i] / 32'000, e.last[i], .012);
    BOOST_TEST(counts.occupied[4] == 4000);
    BOOST_TEST(counts.first_sizes[1] == 16'000);
    if (e.most == std::string("2")) {
      near(counts.prompt, 101.5, 4);
      near(counts.answer, 27.1, .4);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_number_of_proposals_needed_is_as_measured) {
  struct Expected {
    TaskOptions options;
    double proposals;
  };
  for (const Expected& e : {Expected{{}, 1.99},
                            {advanced, 5.94},
                            {{{"version", "advanced"}, {"most-items", "3"}}, 4.80}}) {
    const BoxesRules rules(option_values(boxes(), e.options));
    double proposals = 0, operations = 0;
    for (std::uint32_t index = 0; index < 2000; ++index) {
      Rng rng(6, Purpose::test, 0, index);
      BoxesWorld world(rules, rng);
      const int count = boxes_operations(rules, rng);
      for (int i = 0; i < count; ++i) world.step(rng);
      proposals += static_cast<double>(world.proposals());
      operations += count;
    }
    near(proposals / operations, e.proposals, .03 * e.proposals);
  }
}

BOOST_AUTO_TEST_CASE(lengths_are_log_uniform) {
  for (const bool rounded : {false, true}) {
    const auto task = make(
        {{"version", "advanced"}, {"lengths", rounded ? "log-uniform-rounded" : "log-uniform"}});
    const Counts counts = count(*task, 8, 6000);
    std::vector<double> seen, expected;
    for (std::size_t n = 1; n <= 31; ++n) {
      const double x = static_cast<double>(n);
      seen.push_back(counts.lengths.contains(n) ? counts.lengths.at(n) : 0);
      const double low = std::max(1.0, x - .5);
      expected.push_back(rounded ? std::log(std::min(31.0, x + .5) / low) / std::log(31.0)
                                 : std::log((x + 1) / x) / std::log(32.0));
    }
    BOOST_TEST(chi_square_p(seen, expected) > 1e-3);
    BOOST_TEST(counts.lengths.rbegin()->first <= 31u);
  }
}

BOOST_AUTO_TEST_CASE(boxes_objects_and_order_are_uniform) {
  const auto task = make(advanced);
  std::vector<double> patterns(256), objects(100);
  std::map<std::string, std::size_t> place;
  for (std::uint32_t index = 0; index < 7000; ++index) {
    const Sentence first = sentences_of(*task, draw(*task, index)).front();
    const std::vector<char> letters = boxes_in(first);
    BOOST_REQUIRE(std::ranges::is_sorted(letters));
    std::size_t pattern = 0;
    for (const char letter : letters) pattern |= std::size_t{1} << (letter - 'A');
    patterns[pattern] += 1;
    for (const std::string& object : objects_in(first)) {
      objects.at(place.emplace(object, place.size()).first->second) += 1;
    }
  }
  std::erase(patterns, 0.0);
  BOOST_TEST(patterns.size() == 70u);
  BOOST_TEST(chi_square_p(patterns) > 1e-3);
  BOOST_TEST(chi_square_p(objects) > 1e-3);

  std::vector<double> first_clause(7);
  for (std::uint32_t index = 0; index < 2000; ++index) {
    const auto letters = boxes_in(sentences_of(*make(), draw(*make(), index)).front());
    first_clause[static_cast<std::size_t>(letters.front() - 'A')] += 1;
  }
  BOOST_TEST(chi_square_p(first_clause) > 1e-3);
}

BOOST_AUTO_TEST_CASE(depths_are_as_measured) {
  Tally tally;
  const auto task = make(advanced);
  for (std::uint32_t index = 0; index < 6000; ++index) {
    const Sample sample = draw(*task, index);
    std::vector<std::int32_t> said;
    for (const std::int32_t output : sample.asked) {
      said.push_back(sample.targets[static_cast<std::size_t>(output)]);
    }
    task->score(sample, said, tally);
  }
  double below = 0;
  for (const auto& [name, share] : {std::pair{"depth 1", .319},
                                    {"depth 2-3", .613},
                                    {"depth 4-7", .875},
                                    {"depth 8-15", .999}}) {
    below += static_cast<double>(tally.at(name).count);
    near(below / 6000, share, .025);
  }
  near(static_cast<double>(tally.at("operations 1").count) / 6000, .2, .02);
}

BOOST_AUTO_TEST_CASE(depth_counts_operations_on_the_way) {
  const auto task = make(advanced);
  const auto depth_of = [&](const std::string& prompt) {
    Sample sample{.tokens = task->vocabulary().encode("<begin> " + prompt + " <answer>"),
                  .targets = {}};
    const std::size_t given = sample.tokens.size();
    for (const std::int32_t token : task->vocabulary().encode(task->answer(prompt))) {
      sample.tokens.push_back(token);
    }
    sample.targets = sample.tokens;
    sample.targets.erase(sample.targets.begin());
    sample.targets.push_back(-1);
    std::vector<std::int32_t> said;
    for (std::size_t i = given - 1; i + 1 < sample.tokens.size(); ++i) {
      sample.asked.push_back(static_cast<std::int32_t>(i));
      said.push_back(sample.targets[i]);
    }
    Tally tally;
    task->score(sample, said, tally);
    return tally.metrics()[2].name;
  };
  BOOST_TEST(depth_of(advanced_prompt) ==
             // The depth of a box is the number of operations that led to its contents. Box A has
             // depth 2 after a put and a remove. Its contents are then moved to D, to G and to C,
             // so Box C has depth 5, the largest depth.
             "depth 4-7");
  // In this prompt, the contents of the box that holds the rose result from three moves, a put and
  // a remove, so the depth is 5.
  BOOST_TEST(depth_of(small_prompt) == "depth 4-7");
  const std::string start = small_prompt.substr(0, small_prompt.find('.') + 1);
  BOOST_TEST(depth_of(start + " Put the egg into Box A.") == "depth 1");
  BOOST_TEST(depth_of(start + " Put the egg into Box A. Put the fig into Box D.") == "depth 1");
  BOOST_TEST(depth_of(start + " Put the egg into Box A. Remove the egg from Box A.") ==
             "depth 2-3");
  // After all contents of box A were moved away, its depth is 0 again.
  BOOST_TEST(depth_of(start + " Move the contents of Box A to Box B. Move the contents of Box D to "
                              "Box A. Put the egg into Box H.") == "depth 1");
}

BOOST_AUTO_TEST_CASE(each_initial_state_belongs_to_either_train_or_test) {
  const TaskOptions small{{"version", "advanced"}, {"boxes", "4"}, {"objects", "8"}};
  const auto starts = [&](std::string_view distribution, std::uint32_t samples) {
    const auto task = make(small, distribution);
    std::set<Sentence> seen;
    for (std::uint32_t index = 0; index < samples; ++index) {
      seen.insert(sentences_of(*task, draw(*task, index)).front());
    }
    return seen;
  };
  const auto train = starts("train", 6000);
  const auto test = starts("test", 1000);
  // With 4 boxes and 8 objects, there are C(4, 2) choices of the two boxes that are not empty, and
  // 8 * 7 choices of one object for each: 336 initial states.
  BOOST_TEST(train.size() + test.size() == 336u);
  BOOST_TEST(test.size() >= 12u);
  BOOST_TEST(test.size() <= 32u);
  for (const Sentence& start : test) BOOST_REQUIRE(!train.contains(start));
}

BOOST_AUTO_TEST_CASE(lengths_stay_within_the_bound) {
  BOOST_TEST(make()->longest() == 591 + 3);
  BOOST_TEST(make(advanced)->longest() == 374 + 3);
  BOOST_TEST(make({{"version", "advanced"}, {"boxes", "4"}, {"objects", "20"}, {"operations", "8"}})
                 ->longest() == 14 + 80 + 18 + 3);
}

BOOST_AUTO_TEST_CASE(options_that_do_not_fit_are_refused) {
  const auto refused = [](const TaskOptions& options, const std::string& message) {
    BOOST_TEST(refusal([&] { make(options); }) == "task boxes: option " + message);
  };
  refused({{"boxes", "1"}}, "boxes: expected a whole number from 2 to 26, got \"1\"");
  refused({{"boxes", "27"}}, "boxes: expected a whole number from 0 to 26, got \"27\"");
  refused({{"objects", "20"}}, "objects: expected at least 21 (boxes times most-items), got 20");
  refused({{"objects", "101"}}, "objects: expected a whole number from 1 to 100, got \"101\"");
  refused({{"version", "advanced"}, {"occupied", "any"}},
          "occupied: expected \"start\", \"at-most\" or \"exactly\", because option \"version\" is "
          "\"advanced\", got \"any\"");
  refused({{"version", "extended"}}, "version: expected default or advanced, got \"extended\"");
}

BOOST_AUTO_TEST_SUITE_END()
