#include "apps/run/events.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <cstring>

#include "core/crc32c.h"
#include "core/error.h"

namespace longhand::app {
namespace {

/// Appends the bytes of a number in little-endian order.
template <class T>
void append(std::string& bytes, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
  }
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes.push_back(static_cast<char>((value & 127) | 128));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

// Wire types of protocol buffers: 0 is a varint, 1 is eight bytes, 2 is a length followed by bytes,
// and 5 is four bytes.
std::string key(std::uint64_t field, std::uint64_t type) { return varint(field << 3 | type); }

std::string eight(std::uint64_t field, double value) {
  std::string bytes = key(field, 1);
  append(bytes, std::bit_cast<std::uint64_t>(value));
  return bytes;
}

std::string four(std::uint64_t field, float value) {
  std::string bytes = key(field, 5);
  append(bytes, std::bit_cast<std::uint32_t>(value));
  return bytes;
}

std::string nested(std::uint64_t field, std::string_view content) {
  return key(field, 2) + varint(content.size()) + std::string(content);
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::uint32_t masked(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace

EventsFile::EventsFile(const Folder& folder) {
  const double wall = now();
  const std::string name =
      text("events.out.tfevents.", static_cast<std::int64_t>(wall), ".longhand");
  path_ = folder.path() / name;
  file_ = folder.open_file(name, O_WRONLY | O_CREAT | O_APPEND, Links::refuse, 0644);
  write(eight(1, wall) + nested(3, "brain.Event:2"));
}

void EventsFile::add(std::int64_t step,
                     const std::vector<std::pair<std::string, double>>& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    summary += nested(1, nested(1, tag) + four(2, static_cast<float>(value)));
  }
  write(eight(1, now()) + key(2, 0) + varint(static_cast<std::uint64_t>(step)) +
        nested(5, summary));
}

void EventsFile::write(const std::string& message) {
  std::string length, record;
  append(length, static_cast<std::uint64_t>(message.size()));
  record = length;
  append(record, masked(length));
  record += message;
  append(record, masked(message));
  const ssize_t written = ::write(file_.get(), record.data(), record.size());
  LONGHAND_CHECK(written == static_cast<ssize_t>(record.size()), path_.string(),
                 ": cannot be written: ", written < 0 ? std::strerror(errno) : "disk full");
}

}  // namespace longhand::app
