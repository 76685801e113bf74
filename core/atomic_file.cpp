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

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path target) : target_(std::move(target)) {
  LONGHAND_CHECK(target_.has_filename(), target_.native(), ": cannot write: not a file name");
  buffer_.reserve(buffer_size);
  static std::atomic<unsigned> count{0};
  // The name is free unless a process of the same number died while writing here.
  do {
    temporary_ = folder_of(target_) / text(temporary_prefix, ::getpid(), '-', count++, ".tmp");
    file_ =
        FileDescriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  } while (!file_.valid() && errno == EEXIST);
  if (!file_.valid()) fail_with_errno("create a file beside it");
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  LONGHAND_CHECK(file_.valid(), target_.native(), ": cannot write: already committed");
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

void AtomicFile::commit() {
  LONGHAND_CHECK(file_.valid(), target_.native(), ": cannot write: already committed");
  put(buffer_);
  buffer_.clear();
  if (::fsync(file_.get()) != 0) fail_with_errno("write");
  if (!file_.close()) fail_with_errno("write");
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail_with_errno("replace");
  temporary_.clear();
  sync_folder(folder_of(target_));
}

void AtomicFile::fail_with_errno(std::string_view step) const {
  fail(target_.native(), ": cannot ", step, ": ", std::strerror(errno));
}

bool is_temporary(std::string_view file_name) {
  return file_name.starts_with(temporary_prefix) && file_name.ends_with(".tmp");
}

void write_atomically(const std::filesystem::path& target, std::string_view text) {
  AtomicFile file(target);
  file.write(text);
  file.commit();
}

void sync_folder(const std::filesystem::path& folder) {
  const FileDescriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync a folder and say EINVAL; there is nothing more to do on them.
  LONGHAND_CHECK(directory.valid() && (::fsync(directory.get()) == 0 || errno == EINVAL),
                 folder.native(), ": cannot sync the folder: ", std::strerror(errno));
}

}  // namespace longhand
