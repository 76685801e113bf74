#include "apps/run/transcript.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "apps/run/data_files.h"
#include "apps/version.h"
#include "core/atomic_file.h"
#include "core/cpu/isa.h"
#include "core/mapped_file.h"
#include "core/quote.h"
#include "core/sha256.h"

namespace longhand::app {
namespace {

constexpr std::size_t longest_transcript_line = 64u << 20;  // maximum bytes of a line
const std::string hash_before_all(64, '0');  // value of the member `before` in the first line

bool is_hexadecimal(const Json& json, std::size_t digits) {
  return json.is_string() && json.string().size() == digits &&
         json.string().find_first_not_of("0123456789abcdef") == std::string::npos;
}

Json with_root(const nn::TensorHashes& tensors) {
  Json::Object hashes;
  for (const auto& [name, hash] : tensors) hashes.emplace_back(name, hash);
  return {{"hash", nn::root_of(tensors)}, {"tensors", Json(std::move(hashes))}};
}

/// A line of the transcript as text. Its first member is `before`, the hash of the preceding line.
std::string chained(const Json& line, const std::string& before) {
  Json::Object members{{"before", before}};
  members.insert(members.end(), line.members().begin(), line.members().end());
  return Json(std::move(members)).dump();
}

/// The members of a header except `before` and `step`. Two headers count as equal if these members
/// are equal.
Json::Object content_of(const Json& header) {
  Json::Object content;
  for (const auto& member : header.members()) {
    if (member.first != "before" && member.first != "step") content.push_back(member);
  }
  return content;
}

}  // namespace

std::string bits_of(double value) {
  std::string digits(16, '0');
  auto bits = std::bit_cast<std::uint64_t>(value);
  for (std::size_t i = 16; i-- > 0; bits >>= 4) digits[i] = "0123456789abcdef"[bits & 15];
  return digits;
}

double from_bits(const std::string& digits) {
  std::uint64_t bits = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
  return std::bit_cast<double>(bits);
}

std::string file_hash(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  Sha256 hash;
  hash.add(mapped.bytes());
  return hash.finish();
}

std::string config_hash(const std::filesystem::path& run, std::int64_t steps) {
  const std::filesystem::path file = run / "config.ini";
  Config config = Config::read(file);
  if (config.training().schedule.steps == steps) return file_hash(file);
  config.set("training.steps", std::to_string(steps));
  return sha256(config.ini());
}

std::string kernels_of(const Backend& backend) {
  if (backend.name() == "cpu") {
    if (backend.options().math == Math::portable) return "any";
    return std::string(cpu::name_of(cpu::choose_isa()));
  }
  const std::vector<std::string> devices = backend.devices();
  return devices.empty() ? backend.name() : devices.front();
}

Json header_line(const RunFolder& run, const Backend& backend, std::int64_t step,
                 const std::string& initial, std::int64_t every) {
  const TrainingSettings settings = run.config().training();
  Json data = Json::array();
  for (const RunData& d : data_of(run.config())) {
    data.push_back({{"name", d.name}, {"hash", file_hash(d.path)}});
  }
  return {{"step", step},
          {"version", version},
          {"commit", commit},
          {"backend", backend.name()},
          {"kernels", kernels_of(backend)},
          {"math", name_of(backend.options().math)},
          {"seed", settings.seed},
          {"steps", settings.schedule.steps},
          {"config", config_hash(run.path(), settings.schedule.steps)},
          {"data", std::move(data)},
          {"initial", initial},
          {"every", every}};
}

Json step_line(const nn::StepReport& r) {
  if (r.skipped) return {{"step", r.step}, {"batches", r.batches}, {"skipped", true}};
  return {{"step", r.step},
          {"batches", r.batches},
          {"loss", bits_of(r.loss)},
          {"gradient_norm", bits_of(r.gradient_norm)}};
}

Json state_line(std::int64_t step, const nn::StateHashes& hashes) {
  return {{"step", step},
          {"parameters", with_root(hashes.parameters)},
          {"optimizer", with_root(hashes.optimizer)}};
}

TranscriptReader::TranscriptReader(const Folder& run)
    : path_((run.path() / transcript_file).string()), hash_(hash_before_all) {
  FileDescriptor file = run.open_file(transcript_file, O_RDONLY, Links::follow);
  LONGHAND_CHECK(file.valid(), path_, ": cannot be read: ", std::strerror(errno),
                 "; `longhand train --transcript` writes it");
  lines_.emplace(std::move(file), path_, longest_transcript_line);
}

bool TranscriptReader::next() {
  const auto text = lines_->next();
  if (!text || lines_->cut()) return false;
  ++number_;
  const auto kind_before = std::exchange(kind_, std::nullopt);
  const std::int64_t step_before = line_.step;
  parse(*text);
  check_members();
  line_.step = line_.json["step"].integer();
  if (line_.json["before"].string() != hash_) {
    refuse("before: expected ", hash_, ", the hash of the previous line, got ",
           line_.json["before"].string());
  }
  kind_ = line_.kind;
  check_order(kind_before, step_before);
  if (line_.kind == Kind::header && number_ == 1) every_ = line_.json["every"].integer();
  hash_ = sha256(line_.text);
  return true;
}

void TranscriptReader::parse(std::string_view text) {
  std::optional<Json> json = Json::parse(text);
  if (!json || !json->is_object()) refuse("expected a JSON object, got ", quote(text));
  line_.json = std::move(*json);
  line_.text = text;
  line_.kind = line_.json.contains("config")       ? Kind::header
               : line_.json.contains("parameters") ? Kind::state
                                                   : Kind::step;
}

void TranscriptReader::check_members() const {
  const auto member = [&](const Json& json, const char* name) -> const Json& {
    const Json* const found = json.find(name);
    if (!found) refuse("expected a member ", quote(name), ", got none");
    return *found;
  };
  const auto require = [&](bool condition, const char* name, const char* expected) {
    if (!condition) refuse(name, ": expected ", expected, ", got another value");
  };
  const auto require_hash = [&](const Json& json, const char* name) {
    require(is_hexadecimal(member(json, name), 64), name, "64 hexadecimal digits");
  };
  const Json& json = line_.json;
  const auto require_count = [&](const char* name) {
    const Json& count = member(json, name);
    require(count.is_int64() && count.integer() >= 0, name, "a number from 0 to 2^63 - 1");
  };
  require_hash(json, "before");
  require_count("step");
  switch (line_.kind) {
    case Kind::header: {
      for (const char* name : {"version", "commit", "backend", "kernels", "math", "initial"}) {
        require(member(json, name).is_string(), name, "a text");
      }
      for (const char* name : {"seed", "steps", "every"}) require_count(name);
      require_hash(json, "config");
      require(member(json, "data").is_array(), "data", "a list");
      for (const Json& file : json["data"].elements()) {
        require(file.is_object() && member(file, "name").is_string(), "data", "names and hashes");
        require_hash(file, "hash");
      }
      break;
    }
    case Kind::step: {
      require_hash(json, "batches");
      if (json.contains("skipped")) break;
      for (const char* name : {"loss", "gradient_norm"}) {
        require(is_hexadecimal(member(json, name), 16), name, "16 hexadecimal digits");
      }
      break;
    }
    case Kind::state: {
      for (const char* name : {"parameters", "optimizer"}) {
        const Json& hashes = member(json, name);
        require(hashes.is_object(), name, "an object");
        require_hash(hashes, "hash");
        const Json& tensors = member(hashes, "tensors");
        require(tensors.is_object(), name, "hashes of tensors");
        nn::TensorHashes all;
        for (const auto& [tensor, hash] : tensors.members()) {
          require(is_hexadecimal(hash, 64), name, "64 hexadecimal digits for each tensor");
          all[tensor] = hash.string();
        }
        if (nn::root_of(all) != hashes["hash"].string()) {
          refuse(name, ": expected the hash ", nn::root_of(all),
                 ", computed from the hashes of the tensors, got ", hashes["hash"].string());
        }
      }
      break;
    }
  }
}

void TranscriptReader::check_order(const std::optional<Kind>& before,
                                   std::int64_t step_before) const {
  const auto words = [](Kind kind) {
    return kind == Kind::header ? "a header" : kind == Kind::step ? "a step" : "a state";
  };
  const auto require = [&](bool condition, const std::string& expected) {
    if (!condition) {
      refuse("expected ", expected, ", got ", words(line_.kind), " with step ", line_.step);
    }
  };
  if (!before) return require(line_.kind == Kind::header && line_.step == 0, "a header of step 0");
  if (number_ == 2)
    return require(line_.kind == Kind::state && line_.step == 0, "the state of step 0");
  const bool state_missing = *before == Kind::step && every_ > 0 && step_before % every_ == 0;
  if (line_.kind == Kind::state || state_missing) {
    return require(line_.kind == Kind::state && *before == Kind::step && line_.step == step_before,
                   *before == Kind::step
                       ? text("step ", step_before + 1, " or the state of step ", step_before)
                       : text("step ", step_before + 1));
  }
  // A resumed run may add a header. The header never follows a step line: a run is resumed from a
  // checkpoint, so the line before the header is the checkpoint's state line or another header.
  if (line_.kind == Kind::header) {
    return require(*before != Kind::step && line_.step == step_before,
                   text("step ", step_before + 1));
  }
  require(line_.step == step_before + 1, text("step ", step_before + 1));
}

TranscriptWriter::TranscriptWriter(const Folder& run, std::int64_t step, Json header)
    : path_((run.path() / transcript_file).string()), hash_(hash_before_all) {
  const bool adds_header = !run.contains(transcript_file) || keep_until(run, step, header);
  every_ = header["every"].integer();
  file_ = run.open_file(transcript_file, O_WRONLY | O_APPEND | O_CREAT, Links::refuse);
  LONGHAND_CHECK(file_.valid(), path_, ": cannot be written: ", std::strerror(errno));
  if (adds_header) append(header);
}

/// Removes the transcript's lines after `step`. Copies `initial` and `every` of its first header to
/// `header`. Returns true if `header` then differs from the last header of the transcript.
bool TranscriptWriter::keep_until(const Folder& run, std::int64_t step, Json& header) {
  AtomicFile kept(run, transcript_file);
  TranscriptReader reader(run);
  Json last = Json::object();  // the last header that is kept
  while (reader.next() && reader.line().step <= step) {
    const TranscriptReader::Line& line = reader.line();
    kept.write(line.text);
    kept.write("\n");
    hash_ = reader.hash();
    ++lines_;
    if (line.kind == TranscriptReader::Kind::state) state_ = line.step;
    if (line.kind != TranscriptReader::Kind::header) continue;
    if (lines_ == 1) {
      header["initial"] = line.json["initial"];
      header["every"] = line.json["every"];
    }
    last = line.json;
  }
  LONGHAND_CHECK(step == 0 || state_ == step, path_,
                 ": expected a line for the checkpoint of step ", step,
                 ", from which the run is resumed, got none; if the file is removed, the run is "
                 "resumed without a transcript");
  kept.commit();
  return content_of(header) != content_of(last);
}

void TranscriptWriter::add(std::int64_t step, const nn::StateHashes& hashes) {
  if (state_ == step) return;
  append(state_line(step, hashes));
  state_ = step;
  LONGHAND_CHECK(::fdatasync(file_.get()) == 0, path_,
                 ": cannot be written: ", std::strerror(errno));
}

/// Writes a line. If this fails, every later call throws an Error, because the transcript would
/// lack a line.
void TranscriptWriter::append(const Json& line) {
  const std::string text = chained(line, hash_) + '\n';
  LONGHAND_CHECK(!failed_, path_, ": a line could not be written");
  const ssize_t written = ::write(file_.get(), text.data(), text.size());
  failed_ = written != static_cast<ssize_t>(text.size());
  LONGHAND_CHECK(!failed_, path_,
                 ": cannot be written: ", written < 0 ? std::strerror(errno) : "disk full");
  hash_ = sha256(std::string_view(text).substr(0, text.size() - 1));
  ++lines_;
}

}  // namespace longhand::app
