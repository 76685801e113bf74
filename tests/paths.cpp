#include "tests/paths.h"

namespace longhand {

// This is the only test file that contains paths of the build. All other object files can therefore
// be shared by builds in several folders.
const char* const test_data = LONGHAND_TEST_DATA;
const char* const built_program = LONGHAND_PROGRAM;

}  // namespace longhand
