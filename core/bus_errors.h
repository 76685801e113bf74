#pragma once

namespace longhand {

/// Installs a handler for SIGBUS. This signal is raised if a mapped file (core/mapped_file.h) is
/// read after another program truncated it. The handler prints one line with the file's name to
/// standard error and ends the process with status 1. If SIGBUS has another cause, the process ends
/// as it would without the handler.
void explain_bus_errors();

}  // namespace longhand
