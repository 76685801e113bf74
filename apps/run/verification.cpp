#include "apps/run/verification.h"

#include <algorithm>
#include <map>
#include <set>

#include "apps/run/data_files.h"
#include "apps/run/learning.h"
#include "apps/run/memory.h"
#include "apps/run/transcript.h"
#include "apps/version.h"
#include "core/quote.h"
#include "core/rng.h"

namespace longhand::app {
namespace {

constexpr std::size_t most_headers = 1000;

using Kind = TranscriptReader::Kind;
using Stretch = std::pair<std::int64_t, std::int64_t>;  // first and last of consecutive steps

std::string words_of(const Stretch& steps) {
  return steps.first == steps.second ? text("step ", steps.first)
                                     : text("steps ", steps.first, "..", steps.second);
}

/// Joins the elements of a list: "a, b and c".
std::string list_of(const std::vector<std::string>& words) {
  std::string all;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) all += i + 1 < words.size() ? ", " : " and ";
    all += words[i];
  }
  return all;
}

/// Compares the tensor hashes of the transcript's state line with those of `found`, a state line
/// that was computed anew. `of` selects "parameters" or "optimizer". Describes the first tensor
/// whose hashes differ. Empty if all hashes are equal.
std::string difference(const char* of, const Json& in_transcript, const Json& found) {
  const Json &expected = in_transcript[of]["tensors"], &got = found[of]["tensors"];
  for (const auto& [name, hash] : expected.members()) {
    const Json* const other = got.find(name);
    const std::string tensor = text(of, ": tensor ", quote(name), ": expected the hash ",
                                    hash.string(), ", as in the transcript, got ");
    if (!other) return tensor + "no such tensor";
    if (other->string() != hash.string()) return tensor + other->string();
  }
  for (const auto& [name, hash] : got.members()) {
    if (!expected.contains(name)) {
      return text(of, ": tensor ", quote(name), ": the transcript has no such tensor");
    }
  }
  return {};
}

class Verification {
 public:
  Verification(const std::filesystem::path& run, const std::optional<int>& threads)
      : folder_(run),
        config_(Config::read(run / "config.ini")),
        threads_(threads),
        store_(run / "checkpoints", 1) {
    for (const std::int64_t step : store_.steps()) saved_[step] = nullptr;
  }

  Verified run(const StepsToVerify& steps, const std::optional<std::string>& against) {
    read_transcript();
    LONGHAND_CHECK(!against || *against == hash_, transcript_path(),
                   ": hash of the last line: expected ", against.value_or(""),
                   ", the value of --against, got ", hash_);
    check_headers();
    check_data();
    check_metrics();
    check_checkpoints();
    const std::vector<Stretch> stretches = stretches_of(steps);
    if (!stretches.empty()) {
      if (unreadable_.empty()) check_kernels(stretches);
      std::vector<std::string> names;
      for (const Stretch& stretch : stretches) {
        if (unreadable_.empty()) recompute(stretch);
        names.push_back(words_of(stretch));
      }
      (unreadable_.empty() ? holds_ : unchecked_).push_back(list_of(names));
    }
    Verified verified{.holds = list_of(holds_), .unchecked = list_of(unchecked_), .hash = hash_};
    if (!unchecked_.empty()) verified.unchecked += text(", because ", unreadable_);
    return verified;
  }

 private:
  std::string path_of(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string transcript_path() const { return path_of(transcript_file); }

  void read_transcript() {
    TranscriptReader reader(folder_);
    results_.emplace_back();
    while (reader.next()) {
      const auto& [kind, step, json, text] = reader.line();
      if (kind == Kind::header) headers_.emplace_back(reader.number(), json);
      LONGHAND_CHECK(headers_.size() <= most_headers, transcript_path(), ": expected at most ",
                     most_headers,
                     " headers, which are the lines with the member \"config\", got more");
      if (kind == Kind::step) results_.push_back(result_of(json));
      if (kind != Kind::state) continue;
      states_.insert(step);
      if (const auto saved = saved_.find(step); saved != saved_.end()) saved->second = json;
    }
    LONGHAND_CHECK(!headers_.empty(), transcript_path(), ": expected at least one line, got none");
    last_ = std::ssize(results_) - 1;
    hash_ = reader.hash();
    holds_.push_back(longhand::text("the chain of ", reader.number(), " lines"));
    if (reader.cut()) holds_.back() += " before an incomplete last one";
  }

  void check_headers() {
    const TrainingSettings settings = config_.training();
    const ComputeSettings compute = config_.compute();
    for (const auto& one : headers_) {
      const auto require = [&](const char* name, const Json& expected) {
        const Json& found = one.second[name];
        LONGHAND_CHECK(found == expected, transcript_path(), ':', one.first, ": ", name,
                       ": expected ", expected.dump(), ", as in config.ini, got ", found.dump());
      };
      if (one.first == headers_.back().first) require("steps", settings.schedule.steps);
      require("seed", settings.seed);
      require("backend", compute.backend);
      require("math", name_of(compute.options.math));
      require("config", config_hash(folder_.path(), one.second["steps"].integer()));
      const std::string& initial = one.second["initial"].string();
      LONGHAND_CHECK(initial == "seed" || initial == "checkpoint", transcript_path(), ':',
                     one.first, ": initial: expected \"seed\" or \"checkpoint\", got ",
                     quote(initial));
    }
    holds_.push_back("config.ini");
  }

  /// Compares the hashes of the data files with the transcript. If the data cannot be read, for
  /// example because the text is missing, only stores the reason in unreadable_.
  void check_data() {
    Json data = Json::array();
    std::vector<RunData> files;
    try {
      run_.emplace(folder_.path());
      files = data_of(run_->config());
      for (const RunData& d : files) {
        data.push_back({{"name", d.name}, {"hash", file_hash(d.path)}});
      }
    } catch (const Error& error) {
      unreadable_ = error.what();
      unchecked_.push_back("the data");
      return;
    }
    for (const auto& [number, header] : headers_) {
      const Json& listed = header["data"];
      LONGHAND_CHECK(listed.size() == data.size(), transcript_path(), ':', number,
                     ": data: expected ", data.size(), " files, as in config.ini, got ",
                     listed.size());
      for (std::size_t i = 0; i < data.size(); ++i) {
        LONGHAND_CHECK(listed[i]["name"] == data[i]["name"] && listed[i]["hash"] == data[i]["hash"],
                       files[i].path.string(), ": expected the hash ", listed[i]["hash"].string(),
                       ", as in line ", number, " of the transcript, got ",
                       data[i]["hash"].string());
      }
    }
    if (data.size() > 0) holds_.push_back("the data");
  }

  /// Compares the loss and the gradient norm of each step in metrics.jsonl with the transcript.
  void check_metrics() {
    const std::string path = path_of("metrics.jsonl");
    std::int64_t steps = 0;
    read_metrics(folder_, [&](const Json& line) {
      if (!line.contains("loss")) return;
      const std::int64_t step = line["step"].integer();
      LONGHAND_CHECK(step >= 1 && step <= last_, path, ": step ", step,
                     ": expected a step of the transcript, which has ", last_, " steps");
      const Result& result = results_[static_cast<std::size_t>(step)];
      for (const auto& [name, expected] :
           {std::pair{"loss", result.loss}, std::pair{"gradient_norm", result.gradient_norm}}) {
        const Json* const number = line.find(name);
        const bool equal = number && number->is_number() && !result.skipped &&
                           bits_of(number->number()) == bits_of(expected);
        LONGHAND_CHECK(equal, path, ": step ", step, ": ", name, ": expected ",
                       Json(expected).dump(), ", as in the transcript, got ",
                       number ? number->dump() : "none");
      }
      ++steps;
    });
    holds_.push_back(text("the metrics of ", steps, " steps"));
  }

  void check_checkpoints() {
    for (const auto& [step, state] : saved_) {
      const std::string path = store_.path(step).string();
      LONGHAND_CHECK(!state.is_null(), path,
                     ": expected a line for this checkpoint in the transcript, got none for step ",
                     step);
      const nn::StateHashes hashes = nn::hash_checkpoint(store_.path(step));
      const Json found = state_line(step, hashes);
      for (const char* of : {"parameters", "optimizer"}) {
        // The checkpoint of step 0 lacks the optimizer's state if it was copied from another run.
        if (step == 0 && hashes.optimizer.empty() && of == std::string_view("optimizer")) continue;
        const std::string differs = difference(of, state, found);
        LONGHAND_CHECK(differs.empty(), path, ": ", differs);
      }
    }
    holds_.push_back(saved_.size() == 1 ? "1 checkpoint" : text(saved_.size(), " checkpoints"));
  }

  /// The steps from which the training can be computed again, in ascending order: step 1, and the
  /// step after each checkpoint.
  std::vector<std::int64_t> beginnings() const {
    std::vector<std::int64_t> steps{1};
    for (const auto& [step, state] : saved_) {
      if (step > 0 && step < last_) steps.push_back(step + 1);
    }
    return steps;
  }

  std::vector<Stretch> stretches_of(const StepsToVerify& steps) const {
    if (last_ == 0) return {};
    if (steps.all) return {{1, last_}};
    const std::vector<std::int64_t> begin = beginnings();
    if (steps.range) {
      LONGHAND_CHECK(steps.range->second <= last_, "--steps: expected steps up to ", last_,
                     ", the last step of the transcript, got ", steps.range->second);
      return {
          {*std::prev(std::ranges::upper_bound(begin, steps.range->first)), steps.range->second}};
    }
    std::vector<Stretch> all;
    for (std::size_t i = 0; i < begin.size(); ++i) {
      all.emplace_back(begin[i], i + 1 < begin.size() ? begin[i + 1] - 1 : last_);
    }
    Rng rng(steps.seed, Purpose::sampling);
    rng.shuffle(all.begin(), all.end());
    all.resize(std::min(all.size(), static_cast<std::size_t>(steps.sample)));
    std::ranges::sort(all);
    return all;
  }

  /// The header that is valid for a step, which is the last header before it.
  const Json& header_of(std::int64_t step) const {
    const auto after = std::ranges::find_if(
        headers_, [&](const auto& header) { return header.second["step"].integer() >= step; });
    return after == headers_.begin() ? headers_.front().second : std::prev(after)->second;
  }

  std::shared_ptr<Backend> backend() const {
    ComputeSettings compute = config_.compute();
    if (threads_) compute.options.threads = *threads_;
    return compute.make();
  }

  /// Throws an Error if steps were computed by kernels that may give other bits than the kernels of
  /// this program on this machine.
  void check_kernels(const std::vector<Stretch>& stretches) const {
    const std::string own = kernels_of(*backend());
    for (const Stretch& stretch : stretches) {
      for (const auto& [number, header] : headers_) {
        const std::int64_t from = header["step"].integer();
        const bool used = (from >= stretch.first && from < stretch.second) ||
                          &header == &header_of(stretch.first);
        const std::string& kernels = header["kernels"].string();
        LONGHAND_CHECK(!used || kernels == own, transcript_path(), ':', number, ": ",
                       words_of(stretch), ": expected the kernels ", own, " of this machine, got ",
                       quote(kernels),
                       "; the results of different kernels may not be bit-identical",
                       config_.compute().backend == "cpu"
                           ? "; LONGHAND_CPU=NAME selects the kernels of a processor"
                           : "");
      }
    }
  }

  /// Computes consecutive steps again, from stretch.first to stretch.second, and compares each step
  /// with its line of the transcript.
  void recompute(const Stretch& stretch) const {
    const Json& header = header_of(stretch.first);
    try {
      recompute_from(stretch.first - 1, stretch.second);
    } catch (const Error& error) {
      if (header["commit"] == Json(commit)) throw;
      fail(error.what(), "; the steps were computed by version ",
           printable(header["version"].string()), " of commit ",
           printable(header["commit"].string()), ", but this program is version ", version,
           " of commit ", commit);
    }
  }

  void recompute_from(std::int64_t from, std::int64_t to) const {
    const Config& config = run_->config();
    const auto owned = backend();
    const auto task = config.task();
    const std::shared_ptr<const tasks::Task> learned = config.learned();
    require_memory(config, *learned);
    const TrainingSettings settings = config.training();
    nn::Decoder model(*owned, config.model(*task), settings.seed, config.storage());
    set_up_training(config, model);

    TranscriptReader reader(folder_);
    // Finds the first line to compare. If `from` is 0, it is the second line of the transcript,
    // which is the state of step 0. Otherwise, it is the first line after step `from`.
    while (reader.next() && (from == 0 ? reader.number() < 2 : reader.line().step <= from)) {
    }
    nn::TrainerHooks hooks;
    hooks.report = [&](const nn::StepReport& report) { compare(reader, step_line(report)); };
    hooks.hashed = [&](std::int64_t step, const nn::StateHashes& hashes) {
      compare(reader, state_line(step, hashes));
    };
    hooks.hashes_after = [&](std::int64_t step) { return states_.contains(step); };
    nn::Trainer trainer(model, config.batches(learned), trainer_options(settings, model), hooks);
    if (from > 0 || headers_.front().second["initial"].string() == "checkpoint") {
      LONGHAND_CHECK(saved_.contains(from), path_of("checkpoints"),
                     ": the checkpoint of step 0, from which the run began, is missing");
      trainer.resume(store_.path(from));
    }
    // A header may change the run's number of steps, and thereby the learning rates of the steps
    // that follow.
    while (trainer.step() < to) {
      const Json& header = header_of(trainer.step() + 1);
      std::int64_t until = to;
      for (const auto& [number, next] : headers_) {
        const std::int64_t step = next["step"].integer();
        if (step > trainer.step()) until = std::min(until, step);
      }
      trainer.set_steps(until, schedule_of(header["steps"].integer()));
      trainer.run();
    }
  }

  /// The learning-rate schedule of the run if it has this number of steps.
  nn::Schedule schedule_of(std::int64_t steps) const {
    Config config = config_;
    config.set("training.steps", std::to_string(steps));
    return config.training().schedule;
  }

  /// Compares the line that `reader` read last with a line that was computed again. Header lines
  /// are skipped. Then reads the next line.
  static void compare(TranscriptReader& reader, const Json& computed) {
    while (reader.line().kind == Kind::header && reader.next()) {
    }
    const Json& line = reader.line().json;
    const std::int64_t step = computed["step"].integer();
    for (const auto& [name, value] : computed.members()) {
      const Json* const found = line.find(name);
      if (found && *found == value) continue;
      if (name == "parameters" || name == "optimizer") {
        reader.refuse("step ", step,
                      ", computed again: ", difference(name.c_str(), line, computed));
      }
      const auto shown = [](const Json* json) {
        if (!json) return std::string("none");
        if (!json->is_string() || json->string().size() != 16) return json->dump();
        return text(Json(from_bits(json->string())).dump(), " (bits ", json->string(), ')');
      };
      reader.refuse("step ", step, ": ", name, ": expected ", shown(&value),
                    ", as computed again, got ", shown(found));
    }
    if (line.size() != computed.size() + 1) {
      reader.refuse("step ", step, ": expected ", computed.size() + 1, " members, got ",
                    line.size());
    }
    reader.next();
  }

  /// The loss and gradient norm of a step, as in the transcript. A skipped step has neither.
  struct Result {
    bool skipped = true;
    double loss = 0, gradient_norm = 0;
  };
  static Result result_of(const Json& line) {
    if (line.contains("skipped")) return {};
    return {false, from_bits(line["loss"].string()), from_bits(line["gradient_norm"].string())};
  }

  Folder folder_;
  Config config_;
  std::optional<int> threads_;
  nn::CheckpointStore store_;
  std::optional<RunFolder> run_;  // no value if the run's data cannot be read
  std::string unreadable_;        // the reason why the run's data cannot be read; usually empty

  std::vector<std::pair<std::int64_t, Json>> headers_;  // line number and JSON of each header
  std::vector<Result> results_;    // element i: result of step i; element 0 is not used
  std::set<std::int64_t> states_;  // steps for which the transcript has a state line
  // For each step with a checkpoint: the state line of this step; null if there is none.
  std::map<std::int64_t, Json> saved_;
  std::int64_t last_ = 0;  // last step of the transcript
  std::string hash_;       // hash of the transcript's last line

  std::vector<std::string> holds_, unchecked_;
};

}  // namespace

Verified verify(const std::filesystem::path& run, const StepsToVerify& steps,
                const std::optional<std::string>& against, const std::optional<int>& threads) {
  require_run(run);
  return Verification(run, threads).run(steps, against);
}

}  // namespace longhand::app
