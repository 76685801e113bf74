#include "tests/paths.h"

namespace longhand {

// Only this file contains paths of the build, so that builds in several folders can share the other
// object files.
const char* const test_data = LONGHAND_TEST_DATA;
const char* const built_program = LONGHAND_PROGRAM;

}  // namespace longhand
