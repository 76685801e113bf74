#pragma once

namespace longhand {

/// Installs a handler for SIGBUS. If another program truncates a mapped file (core/mapped_file.h),
/// reading it prints one line with the file's name to standard error and ends the process with
/// status 1. Any other SIGBUS ends the process as before.
void explain_bus_errors();

}  // namespace longhand
