#include "core/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace longhand {
namespace {

constexpr std::size_t buffer_size = std::size_t{1} << 16;
constexpr std::string_view temporary_prefix = ".longhand-";

Folder folder_of(const std::filesystem::path& file) {
  LONGHAND_CHECK(file.has_filename(), file.native(),
                 ": cannot write: the path does not name a file");
  try {
    return Folder(file.parent_path());
  } catch (const Error& error) {
    fail(file.native(), ": cannot write: ", error.what());
  }
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& target)
    : AtomicFile(folder_of(target), target.filename().string()) {}

AtomicFile::AtomicFile(Folder folder, std::string name)
    : folder_(std::move(folder)), name_(std::move(name)) {
  buffer_.reserve(buffer_size);
  static std::atomic<unsigned> count{0};
  // Tries names for the temporary file until one is free. A name can be taken only if an earlier
  // process with the same process id was killed while it wrote a file in this folder.
  do {
    temporary_ = text(temporary_prefix, ::getpid(), '-', count++, ".tmp");
    file_ = folder_.open(temporary_, O_WRONLY | O_CREAT | O_EXCL);
  } while (!file_.valid() && errno == EEXIST);
  if (!file_.valid()) {
    temporary_.clear();
    fail_with_errno("create a file in its folder");
  }
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlinkat(folder_.descriptor(), temporary_.c_str(), 0);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  LONGHAND_CHECK(file_.valid(), target().native(), ": cannot write: commit() was already called");
  if (buffer_.size() + bytes.size() > buffer_size) {
    put(buffer_);
    buffer_.clear();
  }
  if (bytes.size() > buffer_size) {
    put(bytes);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

void AtomicFile::put(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail_with_errno("write");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::rewrite(std::uint64_t offset, std::string_view text) {
  LONGHAND_CHECK(file_.valid(), target().native(), ": cannot write: commit() was already called");
  put(buffer_);
  buffer_.clear();
  while (!text.empty()) {
    const ssize_t written =
        ::pwrite(file_.get(), text.data(), text.size(), static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR) continue;
      fail_with_errno("write");
    }
    text.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

void AtomicFile::commit() {
  LONGHAND_CHECK(file_.valid(), target().native(), ": cannot write: commit() was already called");
  put(buffer_);
  buffer_.clear();
  if (::fsync(file_.get()) != 0) fail_with_errno("write");
  if (!file_.close()) fail_with_errno("write");
  const int folder = folder_.descriptor();
  if (::renameat(folder, temporary_.c_str(), folder, name_.c_str()) != 0) {
    fail_with_errno("replace");
  }
  temporary_.clear();
  folder_.sync();
}

void AtomicFile::fail_with_errno(std::string_view step) const {
  fail(target().native(), ": cannot ", step, ": ", std::strerror(errno));
}

bool is_temporary(std::string_view file_name) {
  return file_name.starts_with(temporary_prefix) && file_name.ends_with(".tmp");
}

void write_atomically(const std::filesystem::path& target, std::string_view text) {
  AtomicFile file(target);
  file.write(text);
  file.commit();
}

void write_atomically(const Folder& folder, const std::string& name, std::string_view text) {
  AtomicFile file(folder, name);
  file.write(text);
  file.commit();
}

}  // namespace longhand
