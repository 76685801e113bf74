#include "core/data_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <vector>

#include "core/crc32c.h"
#include "core/error.h"
#include "core/regular_file.h"

namespace longhand {
namespace {

constexpr std::size_t read_at_once = 1 << 20;  // bytes per read

/// The state of a file. Every write changes the times of the file, and therefore its state.
using State = std::array<std::int64_t, 5>;  // device, inode, size, mtime and ctime in nanoseconds

std::int64_t nanoseconds(const timespec& time) {
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

State state_of(const FileDescriptor& file, const std::filesystem::path& path) {
  struct stat status {};
  LONGHAND_CHECK(::fstat(file.get(), &status) == 0, path.native(),
                 ": cannot be read: ", std::strerror(errno));
  return {static_cast<std::int64_t>(status.st_dev), static_cast<std::int64_t>(status.st_ino),
          static_cast<std::int64_t>(status.st_size), nanoseconds(status.st_mtim),
          nanoseconds(status.st_ctim)};
}

std::uint64_t hash_of(const State& state) {
  std::uint64_t hash = 0;
  for (const std::int64_t part : state) {
    hash = (std::rotl(hash, 23) ^ static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15u;
  }
  return hash;
}

/// Reads out.size() bytes, beginning at offset `begin`. Returns false if the file is too short.
bool read_all_of(const FileDescriptor& file, const std::filesystem::path& path, std::uint64_t begin,
                 std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t got = ::pread(file.get(), out.data(), out.size(), static_cast<off_t>(begin));
    if (got < 0 && errno == EINTR) continue;
    LONGHAND_CHECK(got >= 0, path.native(), ": cannot be read: ", std::strerror(errno));
    if (got == 0) return false;
    out = out.subspan(static_cast<std::size_t>(got));
    begin += static_cast<std::uint64_t>(got);
  }
  return true;
}

[[noreturn]] void fail_changed(const std::filesystem::path& path) {
  fail(path.native(), ": was changed while it was in use");
}

FileSum sum_of(const FileDescriptor& file, const std::filesystem::path& path, std::uint64_t size) {
  FileSum sum{.bytes = size};
  std::vector<std::byte> bytes(std::min<std::uint64_t>(size, read_at_once));
  for (std::uint64_t begin = 0; begin < size; begin += bytes.size()) {
    bytes.resize(std::min<std::uint64_t>(size - begin, read_at_once));
    if (!read_all_of(file, path, begin, bytes)) fail_changed(path);
    sum.crc = crc32c(bytes, sum.crc);
  }
  return sum;
}

/// Returns the checksum of a file whose size, times and other metadata are `state`, and caches it
/// for this state. The cache is not used within two seconds of the last write. A further write in
/// this time might not change the times, and a cached checksum would then be wrong.
FileSum known_sum(const FileDescriptor& file, const std::filesystem::path& path,
                  const State& state) {
  static std::mutex mutex;
  static std::map<State, FileSum> known;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::int64_t age = std::chrono::nanoseconds(now).count() - state[4];
  const bool lasts = age > 2'000'000'000;
  if (lasts) {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(state); found != known.end()) return found->second;
  }
  const FileSum sum = sum_of(file, path, static_cast<std::uint64_t>(state[2]));
  if (state_of(file, path) != state) fail_changed(path);
  const std::lock_guard lock(mutex);
  if (lasts) known[state] = sum;
  return sum;
}

}  // namespace

DataFile::DataFile(std::filesystem::path path) : path_(std::move(path)) {
  file_ = open_regular_file(path_);
  const State state = state_of(file_, path_);
  sum_ = known_sum(file_, path_, state);
  times_ = hash_of(state);
}

void DataFile::read(std::uint64_t begin, std::span<std::byte> out) const {
  LONGHAND_CHECK(begin <= size() && out.size() <= size() - begin, path_.native(),
                 ": expected a range within the ", size(), " bytes of the file, got bytes ", begin,
                 " to ", begin + out.size());
  if (!read_all_of(file_, path_, begin, out)) fail_changed(path_);
  require_unchanged();
}

void DataFile::require_unchanged() const {
  if (hash_of(state_of(file_, path_)) == times_) return;
  const std::lock_guard lock(comparing_);
  const State state = state_of(file_, path_);
  if (hash_of(state) == times_) return;
  if (static_cast<std::uint64_t>(state[2]) != sum_.bytes ||
      known_sum(file_, path_, state) != sum_) {
    fail_changed(path_);
  }
  times_ = hash_of(state);
}

}  // namespace longhand
