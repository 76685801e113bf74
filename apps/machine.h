#pragma once

#include <string>

namespace longhand::app {

/// The first line of a file that starts with the key, without it: "" where there is none.
std::string find_line(const std::string& file, const std::string& key);

/// The machine in words, for reports: "AMD EPYC, 2 cores, avx512bf16".
std::string machine();

}  // namespace longhand::app
