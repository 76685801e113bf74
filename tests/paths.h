#pragma once

namespace longhand {

extern const char* const test_data;      // this folder
extern const char* const built_program;  // the program of this build

}  // namespace longhand
