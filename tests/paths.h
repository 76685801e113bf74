#pragma once

namespace longhand {

extern const char* const test_data;      // the folder of the tests
extern const char* const built_program;  // path of the program longhand of this build

}  // namespace longhand
