#include <cstddef>

#include "core/mapped_file.h"

/// Advice on memory, which WASI's C library declares but does not define. There are no pages to
/// advise on.
extern "C" int madvise(void*, std::size_t, int) { return 0; }

/// The module maps no files, so a MappedFile is always empty. This file replaces
/// core/mapped_file.cpp.
namespace longhand {

MappedFile::~MappedFile() = default;
void MappedFile::forget(std::span<const std::byte>) const {}
MappedFile::MappedFile(MappedFile&&) noexcept = default;
MappedFile& MappedFile::operator=(MappedFile&&) noexcept = default;

}  // namespace longhand
