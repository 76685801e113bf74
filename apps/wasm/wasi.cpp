#include <cstddef>

/// Advice on memory, which WASI's C library declares but does not define. There are no pages to
/// advise on.
extern "C" int madvise(void*, std::size_t, int) { return 0; }
