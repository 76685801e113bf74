#include "tests/paths.h"

namespace longhand {

// Only the object file of this test file contains paths of the build. Builds in several folders can
// share the object files of all other tests.
const char* const test_data = LONGHAND_TEST_DATA;
const char* const built_program = LONGHAND_PROGRAM;

}  // namespace longhand
