#include "apps/run/data_files.h"

#include <optional>

#include "core/error.h"
#include "core/json.h"
#include "core/quote.h"
#include "core/safetensors_checksums.h"
#include "core/text_file.h"
#include "nn/text/token_file.h"
#include "tasks/text_vocabulary.h"

namespace longhand::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_json = 1 << 20;  // maximum bytes of a data.json

std::string content_of(std::uint64_t bytes, std::string_view crc) {
  return text(bytes, " bytes with checksum ", crc);
}

}  // namespace

std::string RunData::content() const {
  return content_of(sum.bytes, checksums::hexadecimal(sum.crc));
}

std::vector<RunData> data_of(const Config& config) {
  std::vector<RunData> all;
  const auto add = [&](const std::string& name, const fs::path& path) {
    all.push_back({name, path, DataFile(path).sum()});
  };
  if (const tasks::TaskKind& kind = config.kind(); kind.files) {
    for (const auto& [name, path] : kind.files(config.task_values())) add(name, path);
  }
  const char* const tokenizer = "task.tokenizer";
  if (!config.knows(tokenizer) || !tasks::names_tokenizer(config.text(tokenizer))) return all;
  const std::vector<fs::path> files = nn::tokenizer_files(config.text(tokenizer));
  for (const fs::path& file : files) {
    // A tokenizer that is a single file is stored in the run's folder as tokenizer.json, whatever
    // the file's name is.
    add(files.size() == 1 ? "tokenizer.json" : file.filename().string(), file);
  }
  return all;
}

std::string data_json(const std::vector<RunData>& data) {
  Json files = Json::array();
  for (const RunData& d : data) {
    files.push_back({{"name", d.name},
                     {"path", d.path.string()},
                     {"bytes", d.sum.bytes},
                     {"crc32c", checksums::hexadecimal(d.sum.crc)}});
  }
  return Json{{"files", std::move(files)}}.dump(2) + "\n";
}

std::vector<std::pair<std::string, std::string>> recorded_data(const fs::path& run) {
  const fs::path file = run / data_file;
  std::vector<std::pair<std::string, std::string>> all;
  const std::optional<Json> json = Json::parse(read_text(file, largest_json));
  const Json* const files = json && json->is_object() ? json->find("files") : nullptr;
  LONGHAND_CHECK(files && files->is_array(), file.string(),
                 ": damaged: expected an object with a list \"files\"");
  for (const Json& one : files->elements()) {
    const auto member = [&](const char* name) {
      return one.is_object() ? one.find(name) : nullptr;
    };
    const Json *const name = member("name"), *const bytes = member("bytes"),
                      *const crc = member("crc32c");
    LONGHAND_CHECK(
        name && name->is_string() && bytes && bytes->is_int64() && crc && crc->is_string(),
        file.string(), ": damaged: expected \"name\", \"bytes\" and \"crc32c\" of each file");
    all.emplace_back(name->string(),
                     content_of(static_cast<std::uint64_t>(bytes->integer()), crc->string()));
  }
  return all;
}

void require_same_data(const fs::path& run, const std::vector<RunData>& data) {
  const fs::path file = run / data_file;
  if (!fs::exists(file)) return;
  const auto before = recorded_data(run);
  LONGHAND_CHECK(before.size() == data.size(), file.string(), ": expected ", data.size(),
                 " files, as in config.ini, got ", before.size());
  for (std::size_t i = 0; i < data.size(); ++i) {
    const auto& [name, content] = before[i];
    LONGHAND_CHECK(name == data[i].name, file.string(), ": expected the file ", quote(data[i].name),
                   ", as in config.ini, got ", quote(name));
    LONGHAND_CHECK(content == data[i].content(), data[i].path.string(),
                   ": differs from the file with which the run began: expected ",
                   printable(content), ", got ", data[i].content());
  }
}

}  // namespace longhand::app
