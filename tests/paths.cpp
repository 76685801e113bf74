#include "tests/paths.h"

namespace longhand {

// The build's own paths stand in this one file, so that objects of the others can be shared by
// builds in several folders.
const char* const test_data = LONGHAND_TEST_DATA;
const char* const built_program = LONGHAND_PROGRAM;

}  // namespace longhand
