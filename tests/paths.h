#pragma once

namespace longhand {

extern const char* const test_data;      // the folder of the tests
extern const char* const built_program;  // the file of the program longhand in this build

}  // namespace longhand
