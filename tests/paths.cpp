#include "tests/paths.h"

namespace longhand {

// This is the only test file that contains paths of the build, so that builds in several folders
// can share all other object files.
const char* const test_data = LONGHAND_TEST_DATA;
const char* const built_program = LONGHAND_PROGRAM;

}  // namespace longhand
