#pragma once

namespace longhand {

/// After this call, a SIGBUS in a mapped file (core/mapped_file.h) that another program truncated
/// ends the process with status 1 and prints one line with the file's name to standard error. Any
/// other SIGBUS ends the process as before.
void explain_bus_errors();

}  // namespace longhand
