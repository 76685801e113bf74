#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "apps/run/run_folder.h"
#include "core/folder.h"
#include "core/json.h"
#include "core/text_file.h"
#include "nn/training/fingerprints.h"
#include "nn/training/step.h"

/// The file transcript.jsonl of a run folder (docs/guide/verify.md). Each line is a JSON object
/// whose member `before` is the SHA-256 of the line before it, without its line break. There are
/// three kinds of lines:
///   header   program, arithmetic, configuration and data of the steps that follow. The first line
///            is a header. A resumed run adds its header if it differs from the file's last header.
///   step     the hash of a step's batches, and the bits of its loss and gradient norm
///   state    the hashes of all parameters and of the optimizer's state after a step. The second
///            line of the file is the state of step 0, before training.
namespace longhand::app {

/// The header of the steps that a run computes next, without the member `before`, which the writer
/// adds. `initial` states the origin of the parameters before the first step: "seed" or
/// "checkpoint". `every` is the number of steps between states (0: states only at checkpoints).
Json header_line(const RunFolder& run, const Backend& backend, std::int64_t step,
                 const std::string& initial, std::int64_t every);
Json step_line(const nn::StepReport& report);
Json state_line(std::int64_t step, const nn::StateHashes& hashes);

/// A number as it is written in a transcript: its 64 bits as 16 hexadecimal digits.
std::string bits_of(double value);
double from_bits(const std::string& digits);

/// The SHA-256 of the run's config.ini, with training.steps replaced by `steps`. A resumed run may
/// change this setting, but no other.
std::string config_hash(const std::filesystem::path& run, std::int64_t steps);
/// The name of the kernels that the backend uses: an instruction set, such as "avx2", or the name
/// of a GPU. The bits of results depend on the kernels.
std::string kernels_of(const Backend& backend);
std::string file_hash(const std::filesystem::path& file);

/// Reads a transcript line by line. Throws an Error that names the line if it is not JSON, lacks a
/// member, is not allowed after the preceding line, or does not contain the preceding line's hash.
class TranscriptReader {
 public:
  enum class Kind { header, step, state };
  struct Line {
    Kind kind = Kind::header;
    std::int64_t step = 0;
    Json json = {};
    std::string text = {};
  };

  explicit TranscriptReader(const Folder& run);

  /// Reads the next line. Returns false at the end of the file. An incomplete last line is skipped.
  bool next();
  const Line& line() const { return line_; }
  std::int64_t number() const { return number_; }    // number of the line that was read last
  const std::string& hash() const { return hash_; }  // hash of the line that was read last
  /// True if the last line of the file is incomplete, because the process that wrote it was killed.
  /// Known only after next() has returned false.
  bool cut() const { return lines_ && lines_->cut(); }
  /// Throws an Error that begins with the file and the number of the line that was read last.
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(path_, ':', number_, ": ", parts...);
  }

 private:
  void parse(std::string_view text);
  void check_members() const;
  void check_order(const std::optional<Kind>& before, std::int64_t step_before) const;

  std::string path_;
  std::optional<LineReader> lines_;
  std::optional<Kind> kind_;  // kind of the line that was read last; empty before the first line
  Line line_;
  std::int64_t number_ = 0, every_ = 0;
  std::string hash_;
};

/// Writes a run's transcript.
class TranscriptWriter {
 public:
  /// Begins a transcript if the run has none. Otherwise, continues the transcript of a run that is
  /// resumed after `step`: removes the lines of later steps, and sets the members `initial` and
  /// `every` of `header` to those of the transcript's first header. Then adds `header` if it
  /// differs from the last remaining header.
  TranscriptWriter(const Folder& run, std::int64_t step, Json header);

  void add(const nn::StepReport& report) { append(step_line(report)); }
  /// Adds the hashes of the state after `step`, unless the last state is that of `step`. When the
  /// function returns, all lines up to this state are on disk.
  void add(std::int64_t step, const nn::StateHashes& hashes);

  /// The number of steps between states, as stated by the transcript's first header.
  std::int64_t every() const { return every_; }
  std::int64_t lines() const { return lines_; }
  const std::string& hash() const { return hash_; }  // hash of the last line

 private:
  bool keep_until(const Folder& run, std::int64_t step, Json& header);
  void append(const Json& line);

  std::string path_;
  FileDescriptor file_;
  std::int64_t every_ = 0, lines_ = 0;
  bool failed_ = false;                // true if a line could not be written
  std::optional<std::int64_t> state_;  // step of the last line with hashes of the run's state
  std::string hash_;
};

}  // namespace longhand::app
