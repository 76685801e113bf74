#include "nn/text/token_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "core/atomic_file.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "core/mapped_file.h"
#include "core/utf8.h"
#include "nn/text/encoder.h"
#include "nn/training/interruption.h"
#include "nn/training/stop_signals.h"

namespace longhand::nn {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "ids and numbers are stored as they are");

struct Header {
  std::array<char, 8> magic = {'L', 'H', 'T', 'O', 'K', 'E', 'N', 'S'};
  std::uint32_t version = 1;
  std::uint32_t width = 0;  // bytes per id
  std::uint64_t count = 0;  // number of ids
  // The members from text_size to `lossy` identify the text, the tokenizer and the option from
  // which the ids were made.
  std::uint64_t text_size = 0;
  std::int64_t text_changed = 0;  // time of the last change of the text, in nanoseconds since 1970
  std::uint32_t tokenizer = 0;
  std::uint32_t lossy = 0;
  std::uint32_t ids_sum = 0;     // CRC-32C of the ids
  std::uint32_t header_sum = 0;  // CRC-32C of all header bytes before this member
  // Checksum of the separator and of the end tokens of documents (Key::documents_sum()). It is 0 if
  // the whole text is one document.
  std::uint32_t documents = 0;
  std::array<char, 4> unused = {};
};
static_assert(sizeof(Header) == 64);

std::string_view chars(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> bytes_of(const Header& header) {
  return std::as_bytes(std::span(&header, 1));
}

std::uint32_t sum_of(const Header& header) {
  return crc32c(bytes_of(header).first(offsetof(Header, header_sum)));
}

/// The header of a token file for this text. The members that are known only after the text has
/// been encoded are not set.
Header wanted_header(const fs::path& text, const Tokenizer& tokenizer, const TokenFile::Key& key) {
  struct stat status = {};
  LONGHAND_CHECK(::stat(text.c_str(), &status) == 0, text.string(), ": ", std::strerror(errno));
  Header header;
  header.width = tokenizer.size() <= 65536 ? 2 : 4;
  header.text_size = static_cast<std::uint64_t>(status.st_size);
  header.text_changed = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
  header.tokenizer = key.tokenizer;
  header.lossy = key.lossy ? 1 : 0;
  header.documents = key.documents_sum();
  return header;
}

/// Parses a header. No value if the bytes are not the header of a token file of the current
/// version.
std::optional<Header> read_header(std::span<const std::byte> bytes) {
  Header header;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != Header().magic || header.version != Header().version) return std::nullopt;
  return header;
}

std::vector<std::byte> first_bytes(const DataFile& file) {
  std::vector<std::byte> bytes(std::min<std::uint64_t>(file.size(), sizeof(Header)));
  file.read(0, bytes);
  return bytes;
}

std::uint32_t sum_of_ids(const DataFile& file) {
  std::uint32_t sum = 0;
  std::vector<std::byte> bytes(1 << 20);
  for (std::uint64_t begin = sizeof(Header); begin < file.size(); begin += bytes.size()) {
    bytes.resize(std::min<std::uint64_t>(bytes.size(), file.size() - begin));
    file.read(begin, bytes);
    sum = crc32c(bytes, sum);
  }
  return sum;
}

bool same_text(const Header& a, const Header& b) {
  return a.text_size == b.text_size && a.text_changed == b.text_changed &&
         a.tokenizer == b.tokenizer && a.lossy == b.lossy && a.documents == b.documents &&
         a.width == b.width;
}

template <class Id>
void append(std::vector<std::byte>& bytes, std::span<const TokenId> ids) {
  const std::size_t before = bytes.size();
  bytes.resize(before + ids.size() * sizeof(Id));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<Id>(ids[i]);
    std::memcpy(bytes.data() + before + i * sizeof id, &id, sizeof id);
  }
}

/// Splits a text at key.separator and encodes the resulting documents one after another. Between
/// two documents, passes the tokens key.end to the sink.
void encode_documents(Encoder& encoder, std::string_view whole, const TokenFile::Key& key,
                      Encoder::Sink sink) {
  const std::size_t broken = find_broken_utf8(whole);  // position in `whole`, not in a document
  LONGHAND_CHECK(broken == std::string_view::npos, "broken UTF-8 at byte ", broken);
  for (;;) {
    const std::size_t end =
        key.separator.empty() ? std::string_view::npos : whole.find(key.separator);
    encoder.encode(whole.substr(0, end), {.around = false}, sink);
    if (end == std::string_view::npos) return;
    sink(key.end, {});
    whole.remove_prefix(end + key.separator.size());
  }
}

void make(const fs::path& text, const Tokenizer& tokenizer, const TokenFile::Key& key,
          Header header, const fs::path& file) {
  const MappedFile mapped(text);
  std::string_view whole = chars(mapped.bytes());
  std::string replaced;
  if (header.lossy != 0 && find_broken_utf8(whole) != std::string_view::npos) {
    replaced = replace_broken_utf8(whole);
    whole = replaced;
  }
  AtomicFile out(file);
  out.write(bytes_of(header));
  Encoder encoder(tokenizer);
  std::vector<std::byte> bytes;
  const auto sink = [&](std::span<const TokenId> ids, std::span<const ByteRange>) {
    if (StopSignals::raised() != 0) throw Interrupted();
    bytes.clear();
    header.width == 2 ? append<std::uint16_t>(bytes, ids) : append<std::uint32_t>(bytes, ids);
    header.count += ids.size();
    header.ids_sum = crc32c(bytes, header.ids_sum);
    out.write(bytes);
  };
  try {
    encode_documents(encoder, whole, key, sink);
  } catch (const Error& error) {
    fail(text.string(), ": ", error.what());
  }
  header.header_sum = sum_of(header);
  out.rewrite(0, chars(bytes_of(header)));
  out.commit();
}

}  // namespace

std::uint32_t TokenFile::Key::documents_sum() const {
  if (separator.empty()) return 0;
  return std::max<std::uint32_t>(1, crc32c(separator, crc32c(std::as_bytes(std::span(end)))));
}

TokenFile TokenFile::of_bytes(const fs::path& text) {
  return {std::make_unique<const DataFile>(text), 0, 1};
}

TokenFile TokenFile::of_tokens(const fs::path& text, const Tokenizer& tokenizer, const Key& key,
                               const fs::path& file) {
  for (const TokenId id : key.end) {
    LONGHAND_CHECK(id < tokenizer.size(), "the tokens that end a document: expected ids below ",
                   tokenizer.size(), ", got ", id);
  }
  const Header wanted = wanted_header(text, tokenizer, key);
  const auto is_there = [&] {
    if (!fs::exists(file)) return false;
    const DataFile there(file);
    const std::vector<std::byte> bytes = first_bytes(there);
    LONGHAND_CHECK(chars(bytes).starts_with(chars(std::as_bytes(std::span(wanted.magic)))),
                   file.string(), ": expected a file with the tokens of ", text.string(),
                   ", got a file of another kind");
    const auto header = read_header(bytes);
    return header && same_text(*header, wanted);
  };
  if (!is_there()) make(text, tokenizer, key, wanted, file);
  auto opened = std::make_unique<const DataFile>(file);
  const auto header = read_header(first_bytes(*opened));
  LONGHAND_CHECK(header && same_text(*header, wanted), file.string(),
                 ": was replaced while it was opened");
  const std::uint64_t ids = opened->size() - sizeof(Header);
  LONGHAND_CHECK(header->header_sum == sum_of(*header) && ids % header->width == 0 &&
                     header->count == ids / header->width && header->ids_sum == sum_of_ids(*opened),
                 file.string(), ": damaged: remove the file, and it will be created again");
  return {std::move(opened), sizeof(Header), header->width};
}

std::int32_t TokenFile::operator[](std::uint64_t place) const {
  std::int32_t id = 0;
  read(place, std::span(&id, 1));
  return id;
}

void TokenFile::read(std::uint64_t begin, std::span<std::int32_t> out) const {
  LONGHAND_CHECK(begin <= size() && out.size() <= size() - begin,
                 "token file: expected a range within the ", size(), " tokens, got positions ",
                 begin, " to ", begin + out.size());
  std::vector<std::byte> bytes(out.size() * width_);
  file_->read(begin_ + begin * width_, bytes);
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint32_t id = 0;
    std::memcpy(&id, bytes.data() + i * width_, width_);
    out[i] = static_cast<std::int32_t>(id);
  }
}

std::vector<fs::path> tokenizer_files(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  if (fs::exists(path / "tokenizer.json")) return {path / "tokenizer.json"};
  return {path / "vocab.json", path / "merges.txt"};
}

std::uint32_t tokenizer_sum(const fs::path& path) {
  std::uint32_t sum = 0;
  for (const fs::path& file : tokenizer_files(path)) sum = crc32c(MappedFile(file).bytes(), sum);
  return sum;
}

}  // namespace longhand::nn
