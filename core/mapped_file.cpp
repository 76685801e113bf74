#include "core/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "core/bus_errors.h"
#include "core/error.h"
#include "core/regular_file.h"

namespace longhand {
namespace {

/// A file that is currently mapped. The handler of SIGBUS searches a table of these entries for the
/// file's name. If the table is full, further files are not in it, and the handler cannot name
/// them.
struct Mapping {
  std::atomic<bool> is_taken{false};
  std::atomic<const std::byte*> begin{nullptr};
  std::atomic<std::size_t> size{0};
  std::array<char, 256> name{};  // the file's name, printable and terminated by a 0
};
std::array<Mapping, 64> mappings;

void add_mapping(std::span<const std::byte> bytes, const std::string& name) {
  for (Mapping& m : mappings) {
    if (m.is_taken.exchange(true)) continue;
    const std::size_t length = std::min(name.size(), m.name.size() - 1);
    for (std::size_t i = 0; i < length; ++i) {
      const auto c = static_cast<unsigned char>(name[i]);
      m.name[i] = c < 32 || c == 127 ? '?' : name[i];
    }
    m.name[length] = '\0';
    m.size = bytes.size();
    m.begin = bytes.data();
    return;
  }
}

void remove_mapping(std::span<const std::byte> bytes) {
  for (Mapping& m : mappings) {
    if (m.begin != bytes.data()) continue;
    m.begin = nullptr;
    m.is_taken = false;
    return;
  }
}

void put(const char* text) {
  const ssize_t ignored = ::write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(ignored);
}

extern "C" void on_bus_error(int signal, siginfo_t* info, void*) {
  const auto* const at = static_cast<const std::byte*>(info->si_addr);
  for (const Mapping& m : mappings) {
    const std::byte* const begin = m.begin;
    if (!begin || std::less<>()(at, begin) || !std::less<>()(at, begin + m.size)) continue;
    put("longhand: ");
    put(m.name.data());
    put(": was cut short by another program while it was read\n");
    ::_exit(1);
  }
  ::signal(signal, SIG_DFL);  // the faulting instruction runs again and ends the process
}

}  // namespace

void explain_bus_errors() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  const FileDescriptor file = open_regular_file(path);
  struct stat status {};
  LONGHAND_CHECK(::fstat(file.get(), &status) == 0, path.native(),
                 ": cannot be read: ", std::strerror(errno));
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return;  // the kernel refuses to map an empty file
  void* const start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  LONGHAND_CHECK(start != MAP_FAILED, path.native(), ": cannot map: ", std::strerror(errno));
  bytes_ = {static_cast<const std::byte*>(start), size};
  add_mapping(bytes_, path.native());
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  remove_mapping(bytes_);
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::forget(std::span<const std::byte> part) const {
  if (bytes_.empty() || part.empty()) return;
  LONGHAND_CHECK(part.data() >= bytes_.data() && part.data() + part.size() <= &bytes_.back() + 1,
                 "forget: expected a part of the mapped file");
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto first = static_cast<std::size_t>(part.data() - bytes_.data()) / page * page;
  const auto end = static_cast<std::size_t>(part.data() - bytes_.data()) + part.size();
  ::madvise(const_cast<std::byte*>(bytes_.data()) + first, end - first, MADV_DONTNEED);
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace longhand
