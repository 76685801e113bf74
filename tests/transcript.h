#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/sha256.h"
#include "tests/contents.h"

namespace longhand {

inline std::vector<Json> read_transcript(const std::filesystem::path& run) {
  std::vector<Json> lines;
  std::istringstream in(contents(run / "transcript.jsonl"));
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line).value());
  return lines;
}

/// Writes a transcript. The member `before` of each line becomes the hash of the previous line.
inline void write_chained(const std::filesystem::path& run, std::vector<Json> lines) {
  std::ofstream out(run / "transcript.jsonl", std::ios::binary);
  std::string before(64, '0');
  for (Json& line : lines) {
    line["before"] = before;
    const std::string text = line.dump();
    out << text << '\n';
    before = sha256(text);
  }
}

/// The hash of a transcript's last line.
inline std::string last_hash(const std::filesystem::path& run) {
  return sha256(read_transcript(run).back().dump());
}

}  // namespace longhand
