#include "core/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "core/atomic_file.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "core/json.h"
#include "core/quote.h"
#include "core/safetensors_checksums.h"
#include "core/safetensors_header.h"

namespace longhand {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

struct Type {
  std::string_view name;
  unsigned bits;
  std::optional<DType> dtype;
};

/// All element types of the safetensors format. BOOL is a separate entry, although it is stored
/// like u8, because it is not a number.
constexpr std::array<Type, 22> types{{{"F64", 64, DType::f64},   {"F32", 32, DType::f32},
                                      {"BF16", 16, DType::bf16}, {"I32", 32, DType::i32},
                                      {"U8", 8, DType::u8},      {"F16", 16, {}},
                                      {"I64", 64, {}},           {"U64", 64, {}},
                                      {"U32", 32, {}},           {"I16", 16, {}},
                                      {"U16", 16, {}},           {"I8", 8, {}},
                                      {"BOOL", 8, {}},           {"C64", 64, {}},
                                      {"F8_E4M3", 8, {}},        {"F8_E5M2", 8, {}},
                                      {"F8_E8M0", 8, {}},        {"F8_E4M3FNUZ", 8, {}},
                                      {"F8_E5M2FNUZ", 8, {}},    {"F6_E2M3", 6, {}},
                                      {"F6_E3M2", 6, {}},        {"F4", 4, {}}}};

std::string_view type_name(DType dtype) {
  return std::ranges::find(types, std::optional(dtype), &Type::dtype)->name;
}

/// The beginning of an error message about a tensor.
std::string subject(const std::string& file, std::string_view name) {
  return text(file, ": tensor ", quote(name), ": ");
}

/// Number of bytes of a tensor with the shape and type of `record`.
std::uint64_t byte_count(const std::string& file, const SafetensorsRecord& record,
                         const Type& type) {
  std::uint64_t bits = 0;
  LONGHAND_CHECK(
      !__builtin_mul_overflow(static_cast<std::uint64_t>(record.shape.size()), type.bits, &bits),
      subject(file, record.name), "expected a size of less than 2^64 bits, got more");
  LONGHAND_CHECK(bits % 8 == 0, subject(file, record.name),
                 "expected a whole number of bytes, got ", record.shape.size(),
                 " elements of type ", type.name);
  return bits / 8;
}

std::uint64_t byte_count(const SafetensorsItem& item) {
  return static_cast<std::uint64_t>(item.shape.size()) * size_of(item.dtype);
}

/// Converts a tensor's record in the header to an entry that refers to the tensor's bytes in
/// `data`. Throws an Error if type, shape and offsets do not agree with each other or with the
/// file.
SafetensorsEntry checked_entry(const std::string& file, SafetensorsRecord& record,
                               std::span<const std::byte> data) {
  const auto type = std::ranges::find(types, record.type, &Type::name);
  LONGHAND_CHECK(type != types.end(), subject(file, record.name), "unknown dtype ",
                 quote(record.type));
  LONGHAND_CHECK(record.begin <= record.end && record.end <= data.size(),
                 subject(file, record.name), "expected data_offsets within the file's ",
                 data.size(), " data bytes, got [", record.begin, ", ", record.end, ']');
  const std::uint64_t expected = byte_count(file, record, *type);
  LONGHAND_CHECK(record.end - record.begin == expected, subject(file, record.name), "expected ",
                 expected, " bytes for ", type->name, ' ', record.shape, ", got ",
                 record.end - record.begin);
  return {std::move(record.name), std::move(record.type), type->dtype, record.shape,
          data.subspan(record.begin, expected)};
}

/// Indices of the records, sorted by name. Throws an Error if a name occurs twice.
std::vector<std::uint32_t> order_of_names(const std::string& file,
                                          std::span<const SafetensorsRecord> records) {
  std::vector<std::uint32_t> order(records.size());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  const auto name = [&](std::uint32_t i) -> std::string_view { return records[i].name; };
  std::ranges::sort(order, {}, name);
  const auto twice = std::ranges::adjacent_find(order, {}, name);
  LONGHAND_CHECK(twice == order.end(), subject(file, name(*twice)), "given twice");
  return order;
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  MappedFile file(path);
  SafetensorsFile result = parse(file.bytes(), path.string());
  result.file_ = std::move(file);
  return result;
}

SafetensorsFile SafetensorsFile::parse(std::span<const std::byte> bytes, std::string name) {
  std::uint64_t length = 0;
  LONGHAND_CHECK(bytes.size() >= sizeof length, name,
                 ": expected a safetensors file of at least 8 bytes, got ", bytes.size());
  std::memcpy(&length, bytes.data(), sizeof length);
  const std::span<const std::byte> rest = bytes.subspan(sizeof length);
  LONGHAND_CHECK(length <= rest.size(), name, ": expected a header of at most ", rest.size(),
                 " bytes (the rest of the file), got ", length);
  LONGHAND_CHECK(length <= max_header, name, ": expected a header of at most ", max_header,
                 " bytes, got ", length);
  const std::string_view json(reinterpret_cast<const char*>(rest.data()), length);
  SafetensorsHeader header = parse_safetensors_header(json, name);

  const std::span<const std::byte> data = rest.subspan(length);
  const auto extent = [](const SafetensorsRecord& record) {
    return std::pair(record.begin, record.end);
  };
  if (!std::ranges::is_sorted(header.records, {}, extent)) {
    std::ranges::stable_sort(header.records, {}, extent);
  }
  SafetensorsFile result;
  result.by_name_ = order_of_names(name, header.records);
  result.entries_.reserve(header.records.size());
  std::uint64_t covered = 0;
  for (SafetensorsRecord& record : header.records) {
    const std::uint64_t begin = record.begin;
    const std::uint64_t end = record.end;
    result.entries_.push_back(checked_entry(name, record, data));
    LONGHAND_CHECK(begin == covered, subject(name, result.entries_.back().name),
                   begin < covered ? "overlaps the tensor before it: "
                                   : "leaves a gap after the tensor before it: ",
                   "expected data_offsets that begin at ", covered, ", got ", begin);
    covered = end;
  }
  LONGHAND_CHECK(covered == data.size(), name, ": expected ", covered,
                 " data bytes for the tensors, got ", data.size());
  result.name_ = std::move(name);
  result.metadata_ = std::move(header.metadata);
  result.checksums_ = checksums::take(result.metadata_, result.entries_, result.name_);
  return result;
}

void SafetensorsFile::check_sums() const {
  for (std::size_t i = 0; i < checksums_.size(); ++i) {
    const std::string sum = checksums::hexadecimal(crc32c(entries_[i].bytes));
    LONGHAND_CHECK(sum == checksums_[i], subject(name_, entries_[i].name),
                   "damaged: expected data with the checksum ", quote(checksums_[i]), ", got ",
                   sum);
    forget(entries_[i]);
  }
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto name_at = [&](std::uint32_t i) -> std::string_view { return entries_[i].name; };
  const auto place = std::ranges::lower_bound(by_name_, name, {}, name_at);
  return place == by_name_.end() || name_at(*place) != name ? nullptr : &entries_[*place];
}

const SafetensorsEntry& SafetensorsFile::existing(std::string_view name) const {
  const SafetensorsEntry* const entry = find(name);
  LONGHAND_CHECK(entry != nullptr, name_, ": has no tensor ", quote(name));
  return *entry;
}

const SafetensorsEntry& SafetensorsFile::at(std::string_view name) const {
  const SafetensorsEntry& entry = existing(name);
  LONGHAND_CHECK(entry.dtype.has_value(), subject(name_, name),
                 "expected F64, F32, BF16, I32 or U8, got ", entry.type);
  return entry;
}

const SafetensorsEntry& SafetensorsFile::at(std::string_view name, DType dtype,
                                            const Shape& shape) const {
  const SafetensorsEntry& entry = existing(name);
  LONGHAND_CHECK(entry.dtype == dtype && entry.shape == shape, subject(name_, name), "expected ",
                 type_name(dtype), ' ', shape, ", got ", entry.type, ' ', entry.shape);
  return entry;
}

std::vector<std::int32_t> SafetensorsFile::to_i32(std::string_view name) const {
  const SafetensorsEntry& entry = existing(name);
  std::vector<std::int32_t> values(static_cast<std::size_t>(entry.shape.size()));
  if (entry.type == "I32") {
    if (!values.empty()) std::memcpy(values.data(), entry.bytes.data(), entry.bytes.size());
  } else if (entry.type == "U8" || entry.type == "BOOL") {
    std::ranges::transform(entry.bytes, values.begin(), std::to_integer<std::int32_t>);
  } else if (entry.type == "I64") {
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::int64_t wide = 0;
      std::memcpy(&wide, entry.bytes.data() + i * sizeof wide, sizeof wide);
      LONGHAND_CHECK(std::in_range<std::int32_t>(wide), subject(name_, name),
                     "expected values from -2^31 to 2^31 - 1, got ", wide, " at element ", i);
      values[i] = static_cast<std::int32_t>(wide);
    }
  } else {
    fail(subject(name_, name), "expected I32, I64, U8 or BOOL, got ", entry.type);
  }
  return values;
}

namespace {

/// The tensors to write, in the order of their bytes in the file. Wide types come first, so all
/// tensors are aligned.
std::vector<const SafetensorsItem*> in_file_order(std::span<const SafetensorsItem> items) {
  std::vector<const SafetensorsItem*> order(items.size());
  std::ranges::transform(items, order.begin(), [](const SafetensorsItem& item) { return &item; });
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [](const SafetensorsItem* item) { return size_of(item->dtype); });
  return order;
}

struct NewHeader {
  std::string text;
  /// Position in `text` at which the checksums of the tensors begin. The checksums are zeros until
  /// the tensors are written.
  std::size_t sums_begin;
};

NewHeader new_header(const std::string& path, std::span<const SafetensorsItem* const> order,
                     const std::map<std::string, std::string, std::less<>>& metadata) {
  for (const std::string_view key : {checksums::tensors_key, checksums::header_key}) {
    LONGHAND_CHECK(!metadata.contains(key), path, ": metadata ", key,
                   ": expected no such key, because the writer adds this key itself");
  }
  checksums::OfHeader header_sum(metadata);
  std::string sums;
  for (const SafetensorsItem* item : order) {
    header_sum.add_tensor(item->name, type_name(item->dtype), item->shape);
    sums += (sums.empty() ? "" : " ") + checksums::hexadecimal(0);
  }
  std::string header = text("{\"__metadata__\":{\"", checksums::tensors_key, "\":\"");
  const std::size_t sums_begin = header.size();
  header += text(sums, "\",\"", checksums::header_key, "\":\"",
                 checksums::hexadecimal(header_sum.value()), "\"");
  for (const auto& [key, value] : metadata) {
    header += ',' + json_string(key) + ':' + json_string(value);
  }
  header += "},";
  std::set<std::string_view> names{"__metadata__"};
  std::uint64_t offset = 0;
  LONGHAND_CHECK(order.size() <= SafetensorsFile::max_entries, path, ": expected at most ",
                 SafetensorsFile::max_entries, " tensors, got ", order.size());
  for (const SafetensorsItem* item : order) {
    LONGHAND_CHECK(item->name.size() <= SafetensorsFile::max_name, subject(path, item->name),
                   "expected a name of at most ", SafetensorsFile::max_name, " bytes, got ",
                   item->name.size());
    LONGHAND_CHECK(names.insert(item->name).second, subject(path, item->name),
                   item->name == "__metadata__" ? "the format reserves this name" : "given twice");
    const std::uint64_t size = byte_count(*item);
    std::string shape;
    for (const std::int64_t extent : item->shape.extents()) {
      shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    }
    header +=
        text(json_string(item->name), ":{\"dtype\":\"", type_name(item->dtype), "\",\"shape\":[",
             shape, "],\"data_offsets\":[", offset, ',', offset + size, "]},");
    offset += size;
  }
  header.pop_back();
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  LONGHAND_CHECK(header.size() <= SafetensorsFile::max_header, path,
                 ": expected a header of at most ", SafetensorsFile::max_header, " bytes, got ",
                 header.size());
  return {std::move(header), sums_begin};
}

void write_to(AtomicFile& file, std::span<const SafetensorsItem> items,
              const std::map<std::string, std::string, std::less<>>& metadata) {
  const std::string path = file.target().string();
  const std::vector<const SafetensorsItem*> order = in_file_order(items);
  const NewHeader header = new_header(path, order, metadata);
  const std::uint64_t length = header.text.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header.text);
  std::string sums;
  for (const SafetensorsItem* item : order) {
    std::uint64_t written = 0;
    std::uint32_t sum = 0;
    item->bytes([&](std::span<const std::byte> piece) {
      file.write(piece);
      sum = crc32c(piece, sum);
      written += piece.size();
    });
    LONGHAND_CHECK(written == byte_count(*item), subject(path, item->name), "expected ",
                   byte_count(*item), " bytes for ", item->dtype, ' ', item->shape, ", got ",
                   written);
    sums += (sums.empty() ? "" : " ") + checksums::hexadecimal(sum);
  }
  file.rewrite(sizeof length + header.sums_begin, sums);
  file.commit();
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const SafetensorsItem> items,
                       const std::map<std::string, std::string, std::less<>>& metadata) {
  AtomicFile file(path);
  write_to(file, items, metadata);
}

void write_safetensors(const Folder& folder, const std::string& name,
                       std::span<const SafetensorsItem> items,
                       const std::map<std::string, std::string, std::less<>>& metadata) {
  AtomicFile file(folder, name);
  write_to(file, items, metadata);
}

}  // namespace longhand
