#include "core/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <set>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/json.h"
#include "core/mapped_file.h"
#include "core/quote.h"

namespace longhand {
namespace {

constexpr std::size_t largest_header = 1 << 16;
constexpr std::string_view npy_magic = "\x93NUMPY";

struct NpyType {
  std::string_view numpy, safetensors;
  std::size_t size;
};
constexpr NpyType npy_types[] = {{"<f8", "F64", 8}, {"<f4", "F32", 4},  {"<f2", "F16", 2},
                                 {"<i4", "I32", 4}, {"<i8", "I64", 8},  {"<i2", "I16", 2},
                                 {"|u1", "U8", 1},  {"|b1", "BOOL", 1}, {"|i1", "I8", 1}};

struct Array {
  std::string name;
  std::string_view type;  // name of the element type in safetensors
  std::vector<std::int64_t> shape;
  std::string_view bytes;
};

/// Reads the little-endian number of `size` bytes at offset `at`. The caller ensures that these
/// bytes exist.
std::uint64_t little(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  return value;
}

void put_little(std::string& out, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i, value >>= 8) out += static_cast<char>(value & 255);
}

/// Returns the rest of a .npy header, beginning with the value of `key`. A header is, for example,
/// {'descr': '<f8', 'shape': (2, 3), }.
std::string_view value_of(std::string_view header, std::string_view key, const std::string& where) {
  const std::size_t found = header.find(text('\'', key, "':"));
  LONGHAND_CHECK(found != std::string_view::npos, where, ": expected ", key, " in the header");
  std::string_view rest = header.substr(found + key.size() + 3);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

std::vector<std::int64_t> shape_of(std::string_view words, const std::string& where) {
  const std::size_t end = words.find(')');
  LONGHAND_CHECK(words.starts_with('(') && end != std::string_view::npos, where,
                 ": expected a shape such as (2, 3)");
  std::vector<std::int64_t> shape;
  for (std::string_view rest = words.substr(1, end - 1); !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::string_view word = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
    if (word.empty()) continue;
    std::int64_t extent = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), extent);
    LONGHAND_CHECK(error == std::errc() && stop == word.data() + word.size() && extent >= 0, where,
                   ": expected a shape such as (2, 3)");
    shape.push_back(extent);
  }
  return shape;
}

Array read_npy(std::string_view file, const std::string& name, const std::string& where) {
  LONGHAND_CHECK(file.size() >= 12 && file.starts_with(npy_magic), where,
                 ": not a NumPy array: expected \\x93NUMPY at the beginning of the file");
  const std::size_t wide = file[6] == 1 ? 2 : 4, start = 8 + wide;
  const std::uint64_t length = little(file, 8, wide);
  LONGHAND_CHECK(length <= largest_header && length <= file.size() - start, where,
                 ": the header is truncated or too long");
  const std::string_view header = file.substr(start, length);
  const std::string_view type_words = value_of(header, "descr", where);
  const auto known = std::ranges::find_if(npy_types, [&](const NpyType& type) {
    return type_words.starts_with(text('\'', type.numpy, '\''));
  });
  LONGHAND_CHECK(known != std::end(npy_types), where,
                 ": expected little-endian float64, float32, int32, int64, uint8 or bool, got ",
                 quote(type_words.substr(0, std::min(type_words.find(','), type_words.size()))));
  LONGHAND_CHECK(value_of(header, "fortran_order", where).starts_with("False"), where,
                 ": expected C order, got Fortran order (convert with numpy.ascontiguousarray)");
  Array array{.name = name,
              .type = known->safetensors,
              .shape = shape_of(value_of(header, "shape", where), where),
              .bytes = file.substr(start + length)};
  std::uint64_t size = known->size;
  for (const std::int64_t extent : array.shape) {
    LONGHAND_CHECK(!__builtin_mul_overflow(size, static_cast<std::uint64_t>(extent), &size), where,
                   ": the shape is too large");
  }
  LONGHAND_CHECK(size == array.bytes.size(), where, ": expected ", size, " bytes of values, got ",
                 array.bytes.size());
  return array;
}

/// Reads the arrays of an .npz file, which is a zip file. The directory at its end lists the
/// arrays.
std::vector<Array> read_npz(std::string_view file, const std::string& source) {
  constexpr std::size_t end_size = 22, entry_size = 46, local_size = 30;
  const std::size_t from = file.size() > 65557 ? file.size() - 65557 : 0;
  const std::size_t end = file.rfind("PK\5\6");
  LONGHAND_CHECK(end != std::string_view::npos && end >= from && file.size() - end >= end_size,
                 source, ": not an .npz file, or a truncated one");
  const std::uint64_t count = little(file, end + 10, 2);
  std::uint64_t at = little(file, end + 16, 4);
  LONGHAND_CHECK(count != 0xffff && at != 0xffff'ffff, source,
                 ": expected less than 4 GiB and fewer than 65535 arrays");
  struct Member {
    std::string name, where;
    std::uint64_t begin, end;  // byte range of the array's data and the zip header before them
    std::string_view bytes;
    std::uint64_t sum;
  };
  std::vector<Member> members;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto damaged = [&](bool sound) {
      LONGHAND_CHECK(sound, source, ": the zip headers of the .npz file are damaged");
    };
    damaged(at <= end && end - at >= entry_size && file.substr(at, 4) == "PK\1\2");
    const std::uint64_t method = little(file, at + 10, 2), sum = little(file, at + 16, 4);
    const std::uint64_t packed = little(file, at + 20, 4), size = little(file, at + 24, 4);
    const std::uint64_t name_size = little(file, at + 28, 2);
    const std::uint64_t more = little(file, at + 30, 2) + little(file, at + 32, 2);
    const std::uint64_t local = little(file, at + 42, 4);
    damaged(end - at - entry_size >= name_size + more);
    std::string name(file.substr(at + entry_size, name_size));
    at += entry_size + name_size + more;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    const std::string where = text(source, ": array ", quote(name));
    LONGHAND_CHECK(method == 0, where,
                   ": is compressed: save it with numpy.savez instead of savez_compressed");
    damaged(packed == size && local <= end && end - local >= local_size &&
            file.substr(local, 4) == "PK\3\4");
    const std::uint64_t skip =
        local_size + little(file, local + 26, 2) + little(file, local + 28, 2);
    damaged(skip <= end - local && size <= end - local - skip);
    members.push_back(
        {std::move(name), where, local, local + skip + size, file.substr(local + skip, size), sum});
  }
  // The arrays in the file must not overlap. Otherwise 65,534 arrays could share the same bytes,
  // and a small file would need very much memory.
  std::ranges::sort(members, {}, &Member::begin);
  std::vector<Array> arrays;
  std::uint64_t covered = 0;
  for (const Member& member : members) {
    LONGHAND_CHECK(member.begin >= covered, member.where, ": overlaps the array before it");
    covered = member.end;
    LONGHAND_CHECK(crc32(member.bytes) == member.sum, member.where,
                   ": is damaged: its checksum does not match");
    arrays.push_back(read_npy(member.bytes, member.name, member.where));
  }
  return arrays;
}

std::string npy_of(const NamedTensor& named) {
  const Tensor& tensor = named.tensor;
  const auto type = tensor.dtype() == DType::bf16 ? DType::f32 : tensor.dtype();
  std::string_view numpy;
  for (const auto& [ours, theirs] : {std::pair{DType::f64, "<f8"},
                                     {DType::f32, "<f4"},
                                     {DType::i32, "<i4"},
                                     {DType::u8, "|u1"}}) {
    if (ours == type) numpy = theirs;
  }
  std::string shape;
  for (int axis = 0; axis < tensor.shape().rank(); ++axis)
    shape += text(tensor.shape()[axis], ", ");
  if (tensor.shape().rank() > 1) shape.resize(shape.size() - 2);
  std::string header =
      text("{'descr': '", numpy, "', 'fortran_order': False, 'shape': (", shape, "), }");
  header.append((64 - (10 + header.size() + 1) % 64) % 64, ' ');
  header += '\n';
  std::string file = std::string(npy_magic) + std::string("\1\0", 2);
  put_little(file, header.size(), 2);
  file += header;
  const auto append = [&](const auto& values, auto as) {
    for (const auto value : values) {
      const auto stored = static_cast<decltype(as)>(value);
      file.append(reinterpret_cast<const char*>(&stored), sizeof stored);
    }
  };
  switch (type) {
    case DType::f64:
      append(tensor.to_doubles(), double());
      break;
    case DType::f32:
      append(tensor.to_doubles(), float());
      break;
    case DType::i32:
      append(tensor.to_ints(), std::int32_t());
      break;
    default:
      append(tensor.to_ints(), std::uint8_t());
  }
  return file;
}

}  // namespace

std::uint32_t crc32(std::string_view bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
      made[i] = value;
    }
    return made;
  }();
  std::uint32_t sum = ~std::uint32_t{0};
  for (const char c : bytes) sum = sum >> 8 ^ table[(sum ^ static_cast<unsigned char>(c)) & 255];
  return ~sum;
}

bool is_numpy_file(const std::filesystem::path& path) {
  return path.extension() == ".npy" || path.extension() == ".npz";
}

bool is_array_file(const std::filesystem::path& path) {
  return is_numpy_file(path) || path.extension() == ".safetensors" || !path.has_extension();
}

std::vector<std::byte> numpy_as_safetensors(const std::filesystem::path& path,
                                            const std::string& single) {
  const MappedFile mapped(path);
  const std::string_view file(reinterpret_cast<const char*>(mapped.bytes().data()),
                              mapped.bytes().size());
  const std::string source = path.string();
  std::vector<Array> arrays;
  if (path.extension() == ".npy") {
    arrays.push_back(read_npy(file, single, source));
  } else {
    arrays = read_npz(file, source);
  }
  Json::Object header;
  std::set<std::string_view> names;
  std::uint64_t offset = 0;
  for (const Array& array : arrays) {
    LONGHAND_CHECK(names.insert(array.name).second, source, ": array ", quote(array.name),
                   " occurs twice");
    header.emplace_back(array.name,
                        Json{{"dtype", array.type},
                             {"shape", array.shape},
                             {"data_offsets", Json::Array{offset, offset + array.bytes.size()}}});
    offset += array.bytes.size();
  }
  const std::string described = Json(std::move(header)).dump();
  std::string start;
  put_little(start, described.size(), 8);
  start += described;
  std::vector<std::byte> all;
  all.reserve(start.size() + offset);
  const auto append = [&](std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    all.insert(all.end(), bytes.begin(), bytes.end());
  };
  append(start);
  for (const Array& array : arrays) append(array.bytes);
  return all;
}

void save_numpy(const std::filesystem::path& path, std::span<const NamedTensor> tensors) {
  if (path.extension() == ".npy") {
    std::string names;
    for (const NamedTensor& named : tensors) names += (names.empty() ? "" : ", ") + named.name;
    LONGHAND_CHECK(
        tensors.size() == 1, path.string(),
        ": expected a name that ends in .npz, because a .npy file holds one array, got the arrays ",
        names);
    return write_atomically(path, npy_of(tensors[0]));
  }
  AtomicFile out(path);
  std::string directory;
  std::uint64_t offset = 0;
  for (const NamedTensor& named : tensors) {
    const std::string name = named.name + ".npy", array = npy_of(named);
    std::string shared;  // fields that the local header and the directory entry both contain
    put_little(shared, 20, 2);
    put_little(shared, 0, 2);
    put_little(shared, 0, 2);  // method 0: stored without compression
    // The earliest date that a zip file can contain. The date is constant, so that equal arrays
    // give equal files.
    put_little(shared, 0x00210000, 4);
    put_little(shared, crc32(array), 4);
    put_little(shared, array.size(), 4);
    put_little(shared, array.size(), 4);
    put_little(shared, name.size(), 2);
    put_little(shared, 0, 2);
    const std::string local = "PK\3\4" + shared + name;
    directory += "PK\1\2" + std::string("\24\0", 2) + shared;
    put_little(directory, 0, 10);
    put_little(directory, offset, 4);
    directory += name;
    out.write(local);
    out.write(array);
    offset += local.size() + array.size();
    LONGHAND_CHECK(offset < 0xffff'0000, path.string(),
                   ": expected arrays of less than 4 GiB in total");
  }
  std::string end = "PK\5\6";
  put_little(end, 0, 4);
  put_little(end, tensors.size(), 2);
  put_little(end, tensors.size(), 2);
  put_little(end, directory.size(), 4);
  put_little(end, offset, 4);
  put_little(end, 0, 2);
  out.write(directory + end);
  out.commit();
}

ArrayFile::ArrayFile(const std::filesystem::path& path, const std::string& single)
    : bytes_(is_numpy_file(path) ? numpy_as_safetensors(path, single) : std::vector<std::byte>()),
      arrays_(is_numpy_file(path) ? SafetensorsFile::parse(bytes_, path.string())
                                  : SafetensorsFile::open(path)) {}

void save_arrays(const std::filesystem::path& path, std::span<const NamedTensor> tensors) {
  LONGHAND_CHECK(is_array_file(path), path.string(),
                 ": expected a name that ends in .npy, .npz or .safetensors");
  if (is_numpy_file(path)) return save_numpy(path, tensors);
  save_tensors(path, tensors);
}

}  // namespace longhand
