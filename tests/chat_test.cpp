// Tests conversations with the model of a run, through the program as a user runs it.
#include <csignal>
#include <optional>

#include "core/atomic_file.h"
#include "tests/golden.h"
#include "tests/memorized_answers.h"
#include "tests/program.h"
#include "tests/refusal.h"

namespace chat_test {

using namespace longhand;

struct Talk : Program {
  /// Each answer ends with a line break.
  void train(const std::string& flags = "--task.separator '\\n'", int steps = 150) const {
    train_on_animals(*this, flags, steps, 100'000);
  }
  Outcome say(const std::string& lines, const std::string& words = "") const {
    write_atomically(folder / "lines", lines);
    const bool warm = words.find("--temperature") != std::string::npos;
    return (*this)("chat run " + words + (warm ? "" : " --temperature 0") + " <lines");
  }
};

/// A running longhand process, whose standard input and output are connected to the test.
class Running {
 public:
  Running(const Program& program, const std::vector<std::string>& words) {
    int in[2], out[2];
    LONGHAND_CHECK(::pipe(in) == 0 && ::pipe(out) == 0, "cannot make pipes");
    std::signal(SIGPIPE, SIG_IGN);
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(in[0], STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      for (const int descriptor : {in[0], in[1], out[0], out[1]}) ::close(descriptor);
      std::signal(SIGINT, SIG_DFL);
      std::vector<char*> all{const_cast<char*>(built_program)};
      for (const std::string& word : words) all.push_back(const_cast<char*>(word.c_str()));
      all.push_back(nullptr);
      if (::chdir(program.folder.path().c_str()) == 0) ::execv(built_program, all.data());
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    to_ = in[1];
    from_ = out[0];
  }
  ~Running() {
    ::kill(child_, SIGKILL);
    ::close(from_);
    if (to_ >= 0) ::close(to_);
  }
  void write(const std::string& text) const {
    BOOST_REQUIRE(::write(to_, text.data(), text.size()) == std::ssize(text));
  }
  /// Returns the next output of the program, or an empty string after the end of the output.
  std::string read() const {
    char some[256];
    const ssize_t count = ::read(from_, some, sizeof some);
    return {some, static_cast<std::size_t>(std::max<ssize_t>(0, count))};
  }
  void interrupt() const { ::kill(child_, SIGINT); }
  int finish() {
    ::close(to_);
    to_ = -1;
    return Program::finish(child_);
  }

 private:
  pid_t child_ = 0;
  int to_ = -1, from_ = -1;
};

}  // namespace chat_test

BOOST_FIXTURE_TEST_SUITE(chat_test, Talk)

BOOST_AUTO_TEST_CASE(lines_are_answered_until_the_input_ends) {
  train();
  BOOST_TEST(say("cat?\n/reset\ndog?\n\n/reset\r\ncow?").out == "meow\nwoof woof\nmoo\n");
  BOOST_TEST(say("cat?\n/quit\ndog?\n").out == "meow\n");
  const Outcome help = say("/help\ncat?\n");
  BOOST_TEST(help.out == "meow\n");
  for (const char* command : {"/help", "/reset", "/quit", "Ctrl-C"}) {
    BOOST_TEST(contains(help.err, command));
  }
  BOOST_TEST(say("").out == "");
  BOOST_TEST(say("cat?\n", "--tokens 2").out == "me\n");
  const std::string warm = "--temperature 2 --tokens 20 --seed ";
  BOOST_TEST(say("cat?\n", warm + "3").out == say("cat?\n", warm + "3 --threads 1").out);
  BOOST_TEST(say("cat?\n", warm + "3").out != say("cat?\n", warm + "4").out);

  // The oldest question is dropped first. A line that does not fit into the context is refused.
  const Outcome long_one = say("cow?\ndog?\ncat?\n", "--context 16 --tokens 5");
  BOOST_TEST(contains(long_one.err, "oldest 1 question is forgotten"));
  const Outcome too_long = say("cat? and more than that\ncat?\n", "--context 16 --tokens 5");
  BOOST_TEST(contains(too_long.err, "too long"));
  BOOST_TEST(too_long.out == "meow\n");
  BOOST_TEST(too_long.status == 0);

  // If --tokens is larger than --context, the conversation is still remembered.
  const Outcome two = say("cat?\ndog?\n", "--context 64 --tokens 512");
  BOOST_TEST(!contains(two.err, "forgotten"));
  const Outcome cut = say("dog?\n", "--context 8");
  BOOST_TEST(cut.out == "woof\n");
  BOOST_TEST(contains(cut.err, "the model reads at most 8 tokens"));
  // `generate` stops at the separator that ends an answer.
  BOOST_TEST((*this)("generate run --prompt 'cat?' --temp 0").out == "cat?meow\n");
  BOOST_TEST((*this)("generate run --prompt 'cat?' --temp 0 --stop o").out == "cat?me\n");
  BOOST_TEST((*this)("generate run --prompt 'cat?' --temp 0 --stop '' --tokens 5")
                 .out.starts_with("cat?meow\n"));
}

BOOST_AUTO_TEST_CASE(an_interrupt_ends_the_answer_but_not_the_program) {
  train();
  // Changes the separator that ends an answer to one that the model never generates. The answer
  // then ends only at its limit, 90,000 tokens, which would take minutes.
  const std::string ini = contents(path("run/config.ini"));
  std::string endless = ini;
  const std::size_t place = endless.find("separator = \\n");
  BOOST_REQUIRE(place != std::string::npos);
  endless.replace(place, 14, "separator = ~~");
  write_atomically(folder / "run" / "config.ini", endless);
  Running chat(*this, {"chat", "run", "--tokens", "90000"});
  chat.write("cat?\n");
  BOOST_REQUIRE(!chat.read().empty());
  chat.interrupt();
  chat.write("/quit\n");
  std::size_t rest = 0;
  for (std::string more; rest < 80000 && !(more = chat.read()).empty();) rest += more.size();
  BOOST_REQUIRE(rest < 80000u);
  BOOST_TEST(chat.finish() == 0);
}

BOOST_AUTO_TEST_CASE(the_chat_template_separates_messages) {
  const Json golden = golden_json("chat_templates");
  std::filesystem::create_directory(folder / "words");
  write_atomically(folder / "words" / "tokenizer.json", golden["tokenizer"].dump());
  write_atomically(folder / "words" / "chat_template.jinja",
                   golden["templates"][0]["jinja"].string());
  train("--tokenizer words --task.template auto");
  BOOST_TEST(say("cat?\n/reset\ndog?\n").out == "meow\nwoof woof\n");
  // The run still has its chat template after the tokenizer's folder was removed.
  std::filesystem::remove_all(folder / "words");
  BOOST_TEST(say("cow?\n").out == "moo\n");
  const Json asked =
      json("data --config run/config.ini --tokenizer run/tokenizer --count 1 --json");
  BOOST_TEST(asked["prompt"].string().starts_with("<|im_start|>user\n"));
  BOOST_TEST(asked["prompt"].string().ends_with("<|im_end|>\n<|im_start|>assistant\n"));
  BOOST_TEST(asked["answer"].string().ends_with("<|im_end|>"));
  // The export contains the run's tokenizer and chat template.
  json("export run --out hf --json");
  for (const char* const name : {"tokenizer.json", "chat_template.jinja"}) {
    BOOST_TEST(contents(folder / "hf" / name) == contents(folder / "run" / "tokenizer" / name));
  }
  const Json exported = Json::parse(contents(folder / "hf" / "generation_config.json")).value();
  for (const Json& added : golden["tokenizer"]["added_tokens"]) {
    if (added["content"] == "<|im_end|>") BOOST_TEST((exported["eos_token_id"] == added["id"]));
  }
  BOOST_TEST(exported["eos_token_id"].is_integer());
}

BOOST_AUTO_TEST_CASE(runs_that_cannot_chat_are_refused) {
  train("", 1);
  refuses(2, "chat run --template alpaca </dev/null", "alpaca");
  refuses(2, "chat run --template llama3 </dev/null", "<|eot_id|>");
  refuses(2, "chat run --context 1 </dev/null", "--context");
  refuses(1, "chat absent </dev/null", "absent");
}

BOOST_AUTO_TEST_SUITE_END()
