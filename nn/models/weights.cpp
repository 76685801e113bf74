#include "nn/models/weights.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/dtype.h"
#include "core/error.h"
#include "core/float16.h"
#include "core/quote.h"

namespace longhand::nn {
namespace {

template <class Stored, class Convert>
void read_numbers(std::span<const std::byte> bytes, std::int64_t first, std::span<double> numbers,
                  Convert convert) {
  const std::byte* from = bytes.data() + static_cast<std::size_t>(first) * sizeof(Stored);
  for (double& number : numbers) {
    Stored stored;
    std::memcpy(&stored, from, sizeof stored);
    number = static_cast<double>(convert(stored));
    from += sizeof stored;
  }
}

class SafetensorsWeights final : public Weights {
 public:
  explicit SafetensorsWeights(SafetensorsParts parts) : parts_(std::move(parts)) {}

  const std::string& name() const override { return parts_.name(); }

  double numbers() const override {
    double sum = 0;
    for (const SafetensorsFile& file : parts_.files()) {
      for (const SafetensorsEntry& entry : file.entries()) {
        sum += static_cast<double>(entry.shape.size());
      }
    }
    return sum;
  }

  bool matrices_are_bf16() const override {
    return std::ranges::all_of(parts_.files(), [](const SafetensorsFile& file) {
      return std::ranges::all_of(file.entries(), [](const SafetensorsEntry& entry) {
        return entry.shape.rank() < 2 || entry.dtype == DType::bf16;
      });
    });
  }

  std::optional<StoredTensor> find(std::string_view tensor) const override {
    const auto [entry, file] = parts_.find(tensor);
    if (!entry) return std::nullopt;
    std::string place = text(file->name(), ": tensor ", quote(entry->name), ": ");
    LONGHAND_CHECK((entry->dtype && is_float(*entry->dtype)) || entry->type == "F16", place,
                   "expected F32, F64, F16 or BF16, got ", entry->type);
    const auto read = [entry = entry](std::int64_t first, std::span<double> numbers) {
      const auto same = [](auto x) { return x; };
      if (!entry->dtype) {
        read_numbers<std::uint16_t>(entry->bytes, first, numbers, from_f16);
      } else if (*entry->dtype == DType::f32) {
        read_numbers<float>(entry->bytes, first, numbers, same);
      } else if (*entry->dtype == DType::f64) {
        read_numbers<double>(entry->bytes, first, numbers, same);
      } else {
        read_numbers<bf16>(entry->bytes, first, numbers,
                           [](bf16 x) { return static_cast<float>(x); });
      }
    };
    return StoredTensor{std::move(place), entry->shape, read};
  }

 private:
  SafetensorsParts parts_;
};

}  // namespace

StoredTensor Weights::at(std::span<const std::string> names) const {
  for (const std::string& name : names) {
    if (auto tensor = find(name)) return std::move(*tensor);
  }
  fail(name(), ": has no tensor ", quote(names.front()));
}

std::unique_ptr<Weights> open_weights(const std::filesystem::path& folder) {
  return weights_of(SafetensorsParts::open(folder, "model"));
}

std::unique_ptr<Weights> weights_of(SafetensorsParts parts) {
  return std::make_unique<SafetensorsWeights>(std::move(parts));
}

}  // namespace longhand::nn
