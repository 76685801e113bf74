#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <optional>

#include "apps/compute.h"
#include "apps/run/continuation.h"
#include "apps/run/published_model.h"
#include "core/quote.h"
#include "tasks/text_settings.h"

namespace longhand::app::chat_command {
namespace {

using Role = nn::ChatMessage::Role;
using Tokens = std::vector<std::int32_t>;

constexpr std::size_t longest_line = 1 << 20;  // bytes

constexpr const char* chat_help =
    "/help   prints this list\n"
    "/reset  begins a new conversation\n"
    "/quit   ends the chat, as Ctrl-D does\n"
    "Ctrl-C  ends an answer\n"
    "The model answers all other lines.\n";

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a handler may use it");

extern "C" void on_interrupt(int) { interrupted = true; }

/// After this call, Ctrl-C sets a flag and interrupts a read that waits for a line. If Ctrl-C was
/// ignored before the call, as under nohup, it stays ignored.
void catch_interrupts() {
  struct sigaction action {
  }, before{};
  ::sigaction(SIGINT, nullptr, &before);
  if (before.sa_handler == SIG_IGN) return;
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
}

/// Reads standard input line by line.
class Input {
 public:
  bool is_terminal() const { return is_terminal_; }

  /// Reads the next line, without its line break. Returns an empty line if Ctrl-C was pressed
  /// before a line was read, and no value at the end of the input.
  std::optional<std::string> next() {
    if (is_terminal_) std::cout << "> " << std::flush;
    for (;;) {
      const std::size_t end = buffer_.find('\n');
      if (end != std::string::npos || (at_end_ && !buffer_.empty())) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end == std::string::npos ? end : end + 1);
        if (line.ends_with('\r')) line.pop_back();
        return line;
      }
      if (at_end_) return std::nullopt;
      LONGHAND_CHECK(buffer_.size() <= longest_line, "standard input: expected lines of at most ",
                     longest_line, " bytes");
      char some[4096];
      const ssize_t count = ::read(STDIN_FILENO, some, sizeof some);
      if (count < 0 && errno == EINTR) {
        if (!interrupted.exchange(false)) continue;
        if (is_terminal_) std::cout << "\n(Ctrl-D or /quit ends, /help lists the commands)\n";
        return "";
      }
      LONGHAND_CHECK(count >= 0, "standard input: ", std::strerror(errno));
      at_end_ = count == 0;
      buffer_.append(some, static_cast<std::size_t>(count));
    }
  }

 private:
  bool is_terminal_ = ::isatty(STDIN_FILENO) == 1;
  std::string buffer_;
  bool at_end_ = false;
};

/// A conversation with the model of a run.
class Chat {
 public:
  struct Settings {
    std::string system;  // empty: no system message is used
    nn::GenerateOptions generate;
    std::int64_t context = 0;
  };

  Chat(const LoadedRun& loaded, tasks::ConversationFormat format, Settings settings)
      : loaded_(loaded), format_(std::move(format)), settings_(std::move(settings)) {
    ends_ = ends_of(*loaded.task, format_.end());
    settings_.generate.stops = ends_.tokens;
    reset();
  }

  void reset() {
    messages_.clear();
    if (!settings_.system.empty()) messages_.push_back({Role::system, settings_.system});
    first_ = messages_.size();
  }

  /// Prints the model's answer to a line while it is generated. If the line is too long, throws an
  /// Error and does not add the line to the conversation.
  void answer(const std::string& line) {
    const std::vector<nn::ChatMessage> before = messages_;
    messages_.push_back({Role::user, line});
    Tokens prompt;
    try {
      prompt = prompt_that_fits();
    } catch (const Error&) {
      messages_ = before;
      throw;
    }
    Continuation said(loaded_.task->vocabulary(), prompt, ends_);
    nn::GenerateOptions options = settings_.generate;
    options.most = std::min(options.most, settings_.context - std::ssize(prompt));
    options.seed += static_cast<std::uint64_t>(answers_++);
    bool ended = false;
    options.said = [&](std::size_t, const nn::Choice& choice) {
      ended = said.add(choice) || interrupted;
      std::cout << said.fresh(false) << std::flush;
      return !ended;
    };
    options.positions = given_positions(*loaded_.model, *loaded_.task, options.seed);
    interrupted = false;
    nn::generate(*loaded_.model, {&prompt, 1}, options);
    std::cout << said.fresh(true) << std::endl;
    if (!ended && options.most < settings_.generate.most) {
      std::cerr << "(the answer ends here, because the model reads at most " << settings_.context
                << " tokens)\n";
    }
    interrupted = false;
    messages_.push_back({Role::assistant, said.text()});
  }

 private:
  /// The conversation as tokens. At most half of the context is reserved for an answer. If the
  /// conversation and the reserved tokens together exceed the context, the oldest questions are
  /// dropped with their answers. The last question is never dropped. Its answer may use all of the
  /// remaining context.
  Tokens prompt_that_fits() {
    std::size_t forgotten = 0;
    const std::int64_t reserved = std::min(settings_.generate.most, settings_.context / 2);
    for (;;) {
      Tokens prompt = format_.prompt(messages_);
      const std::int64_t size = std::ssize(prompt);
      const bool is_last = messages_.size() <= first_ + 1;
      if (size + reserved <= settings_.context || is_last) {
        LONGHAND_CHECK(size < settings_.context, "the line is too long: expected at most ",
                       settings_.context - 1, " tokens with the chat template, got ", size);
        LONGHAND_CHECK(size > 0, "expected a line of at least one token");
        if (forgotten > 0) {
          std::cerr << "(the conversation is too long for the model: its oldest " << forgotten
                    << (forgotten == 1 ? " question is" : " questions are") << " forgotten)\n";
        }
        return prompt;
      }
      const auto oldest = messages_.begin() + static_cast<std::ptrdiff_t>(first_);
      messages_.erase(oldest, oldest + 2);  // the question and its answer
      ++forgotten;
    }
  }

  const LoadedRun& loaded_;
  tasks::ConversationFormat format_;
  Settings settings_;
  Ends ends_;
  std::vector<nn::ChatMessage> messages_;
  std::size_t first_ = 0;  // index of the first message that may be dropped
  std::int64_t answers_ = 0;
};

void run(const Arguments& arguments) {
  if (arguments.plain().size() != 1) wrong_usage("expected one run folder or GGUF file");
  const std::string& folder = arguments.plain()[0];
  Chat::Settings settings{.system = arguments.given("system") ? arguments.word("system") : "",
                          .generate = {.most = arguments.integer("tokens", 1, 1 << 24),
                                       .sampling = sampling_from(arguments),
                                       .seed = seed_from(arguments)}};
  if (!arguments.given("temperature")) {
    settings.generate.sampling.temperature = text_temperature;
  }
  const LoadedRun loaded = load_for_prompts(folder, load_options(arguments));
  tasks::ConversationFormat format = conversation_format(loaded, arguments);
  settings.context = loaded.model->config().longest;
  if (arguments.given("context")) {
    settings.context = arguments.integer("context", 2, settings.context);
  }
  Chat chat(loaded, std::move(format), std::move(settings));

  Input input;
  catch_interrupts();
  if (input.is_terminal()) std::cout << "(/help lists the commands)\n";
  while (const auto line = input.next()) {
    if (*line == "/quit") return;
    if (*line == "/help") {
      std::cerr << chat_help;
      continue;
    }
    if (*line == "/reset") {
      chat.reset();
      continue;
    }
    if (line->empty()) continue;
    try {
      chat.answer(*line);
    } catch (const Error& error) {
      std::cerr << "longhand chat: " << printable(error.what()) << '\n';
    }
  }
  if (input.is_terminal()) std::cout << '\n';
}

const Register command{
    {.name = "chat",
     .summary = "chats with the language model of a run, a GGUF file or a Hugging Face folder",
     .usage =
         {"RUN|DIR|FILE.gguf [--template NAME] [--system TEXT] [--tokens N] [--temperature X]"},
     .options =
         join(run_options(),
              join(sampling_options(),
                   {template_option(),
                    {"system", "TEXT", "system message at the start of every conversation"},
                    {"tokens", "N", "maximum number of tokens per answer", "512"},
                    {"context", "N", "context length, in tokens; default: the model's maximum"}})),
     .examples = {"chat runs/smol", "chat runs/smol --temperature 0.7 --top-p 0.9",
                  "chat runs/faq < questions.txt"},
     .notes = "The model answers each line of standard input. The line /reset begins a new\n"
              "conversation. The line /quit or the key Ctrl-D ends the program. Ctrl-C stops an\n"
              "answer. If a conversation exceeds the context length, its oldest questions and\n"
              "answers are dropped.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::chat_command
