#include <iostream>

#include "apps/report.h"
#include "apps/run/run_folder.h"
#include "apps/run/transcript.h"
#include "core/exception_message.h"
#include "nn/training/checkpoint_store.h"

namespace longhand::app::check_command {
namespace {

/// The results of checking the files of a run, one line per check.
class Findings {
 public:
  /// Runs the check `look` and adds the text that it returns. If `look` throws an Error, its
  /// message is added and the file counts as damaged.
  template <class Look>
  void add(const std::string& what, Look look) {
    bool sound = true;
    std::string found;
    try {
      found = look();
    } catch (const std::exception& error) {
      sound = false;
      found = message_of(error);
      ++damaged_;
    }
    ++all_;
    report_.add({{"what", what}, {"sound", sound}, {"found", found}});
  }
  void print(const std::string& run, bool json) {
    report_.set("run", run);
    report_.set("damaged", damaged_);
    report_.print(std::cout, json);
    std::cout.flush();
    LONGHAND_CHECK(damaged_ == 0, run, ": ", damaged_, " of ", all_, " checked parts are damaged");
  }

 private:
  Report report_{{{"what", "what"}, {"sound", "sound"}, {"found", "found"}}};
  std::int64_t all_ = 0, damaged_ = 0;
};

std::string look_at_metrics(const std::filesystem::path& run) {
  const Metrics metrics = read_metrics(Folder(run));
  const std::vector<std::string>& damage = metrics.damage;
  if (!damage.empty()) {
    fail(damage.front(),
         damage.size() > 1 ? text("; the file has ", damage.size(), " damaged lines") : "");
  }
  return text(metrics.lines, metrics.cut ? " lines and one cut short" : " lines");
}

std::string look_at_transcript(const std::filesystem::path& run) {
  TranscriptReader reader{Folder(run)};
  while (reader.next()) {
  }
  return text("the hashes of ", reader.number(), " lines match",
              reader.cut() ? "; one line is cut short" : "");
}

std::string look_at_checkpoint(const std::filesystem::path& folder) {
  const nn::CheckedCheckpoint checked = nn::check_checkpoint(folder);
  return text(checked.checksums ? "checksums match" : "has no checksums; sizes and steps match",
              checked.optimizer ? "" : "; no optimizer");
}

void run(const Arguments& arguments) {
  if (arguments.plain().size() != 1) wrong_usage("expected one run folder");
  const std::filesystem::path run = arguments.plain()[0];
  require_run(run);
  Findings findings;
  findings.add("config.ini", [&] {
    const RunFolder folder(run);
    return std::string("every setting can be used");
  });
  findings.add("metrics.jsonl", [&] { return look_at_metrics(run); });
  if (std::filesystem::exists(run / transcript_file)) {
    findings.add(transcript_file, [&] { return look_at_transcript(run); });
  }
  const nn::CheckpointStore store(run / "checkpoints", 1);
  for (const std::int64_t step : store.steps()) {
    findings.add(text("checkpoints/step-", step),
                 [&] { return look_at_checkpoint(store.path(step)); });
  }
  if (std::filesystem::exists(run / "checkpoints" / "best")) {
    findings.add("checkpoints/best", [&] { return text("names step-", *store.best()); });
  }
  if (std::filesystem::exists(run / data_file)) {
    findings.add(data_file, [&] { return text(recorded_data(run).size(), " files"); });
  }
  findings.print(run.string(), arguments.json());
}

const Register command{
    {.name = "check",
     .summary = "checks the files of a run for damage, and its checkpoints against their checksums",
     .usage = {"RUN"},
     .options = {json_option()},
     .examples = {"check runs/flip-flop-1"},
     .notes = "The exit status is 1 if a file is damaged. To resume training from an earlier\n"
              "checkpoint, use `longhand train --resume RUN --from-step N`.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::check_command
