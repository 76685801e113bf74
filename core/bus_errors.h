#pragma once

namespace longhand {

/// From here on a SIGBUS in a mapped file (core/mapped_file.h), which another program has cut
/// short, ends the process with status 1 and one line on standard error that names the file. Any
/// other SIGBUS ends it as before.
void explain_bus_errors();

}  // namespace longhand
