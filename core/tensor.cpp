#include "core/tensor.h"

#include "core/backend.h"
#include "core/contract/elementwise.h"
#include "core/error.h"

namespace longhand {

struct Tensor::Storage {
  std::shared_ptr<Backend> backend;  // must outlive the memory that it allocated
  void* block;
  std::size_t bytes;
  std::shared_ptr<const void> owner = {};  // of memory that the backend did not allocate

  Storage(Backend& owner, std::size_t size)
      : backend(owner.shared_from_this()), block(owner.memory().allocate(size)), bytes(size) {}
  Storage(Backend& user, const std::byte* memory, std::size_t size,
          std::shared_ptr<const void> memory_owner)
      : backend(user.shared_from_this()),
        block(const_cast<std::byte*>(memory)),  // NOLINT: see Tensor::of_bytes
        bytes(size),
        owner(std::move(memory_owner)) {}
  ~Storage() {
    if (!owner) backend->memory().release(block, bytes);
  }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
};

Tensor::Tensor(Backend& backend, const Shape& shape, DType dtype) : shape_(shape), dtype_(dtype) {
  backend.require_dtype(dtype);
  LONGHAND_CHECK(shape.size() <= (std::int64_t{1} << 57), "tensor ", shape, " is too large");
  storage_ = std::make_shared<Storage>(backend, bytes());
}

Tensor Tensor::zeros(Backend& backend, const Shape& shape, DType dtype) {
  Tensor y(backend, shape, dtype);
  backend(Fill{.value = 0, .y = y});
  return y;
}

Tensor Tensor::from(Backend& backend, const Shape& shape, DType dtype,
                    std::span<const double> values) {
  const Tensor y(backend, shape, dtype);
  y.assign(values);
  return y;
}

Tensor Tensor::from(Backend& backend, const Shape& shape, std::span<const std::int32_t> values) {
  const Tensor y(backend, shape, DType::i32);
  y.assign(values);
  return y;
}

Tensor Tensor::of_bytes(Backend& backend, const Shape& shape, const std::byte* bytes,
                        std::shared_ptr<const void> owner) {
  if (!backend.in_host_memory()) {
    const Tensor copy(backend, shape, DType::u8);
    backend.upload(copy.address(), bytes, copy.bytes());
    return copy;
  }
  Tensor y;
  y.shape_ = shape;
  y.dtype_ = DType::u8;
  y.storage_ = std::make_shared<Storage>(backend, bytes, y.bytes(), std::move(owner));
  return y;
}

void Tensor::assign(std::span<const double> values) const {
  require_count(values.size());
  const auto fill = [&]<class T>(T) {
    std::vector<T> host(values.size());
    for (std::size_t i = 0; i < host.size(); ++i) {
      if constexpr (std::is_same_v<T, bf16>) {
        host[i] = bf16(static_cast<float>(values[i]));
      } else {
        host[i] = static_cast<T>(values[i]);
      }
    }
    backend().upload(address(), host.data(), bytes());
  };
  visit_dtype(dtype_, fill);
}

void Tensor::assign(std::span<const std::int32_t> values) const {
  require(DType::i32);
  require_count(values.size());
  backend().upload(address(), values.data(), bytes());
}

Backend& Tensor::backend() const {
  LONGHAND_CHECK(storage_, "an empty tensor has no backend");
  return *storage_->backend;
}

void* Tensor::address() const {
  return storage_ ? static_cast<std::byte*>(storage_->block) + offset_ : nullptr;
}

void Tensor::require_count(std::size_t values) const {
  LONGHAND_CHECK(static_cast<std::int64_t>(values) == size(), "tensor ", shape_, ": expected ",
                 size(), " values, got ", values);
}

void Tensor::require(DType expected) const {
  LONGHAND_CHECK(dtype_ == expected, "tensor ", shape_, ": expected ", expected, ", got ", dtype_);
}

Tensor Tensor::reshape(const Shape& shape) const {
  LONGHAND_CHECK(shape.size() == size(), "reshape: expected a shape of ", size(),
                 " elements, like ", shape_, ", got ", shape, " with ", shape.size(), " elements");
  Tensor view = *this;
  view.shape_ = shape;
  return view;
}

Tensor Tensor::slice(std::int64_t first, std::int64_t count) const {
  LONGHAND_CHECK(shape_.rank() > 0 && first >= 0 && count >= 0 && first <= shape_[0] - count,
                 "slice: expected rows within ", shape_, ", got ", count, " rows from row ", first);
  Tensor view = *this;
  const std::int64_t stride = shape_[0] == 0 ? 0 : size() / shape_[0];
  view.shape_ = shape_.with_front(count);
  view.offset_ += static_cast<std::size_t>(first * stride) * size_of(dtype_);
  return view;
}

bool Tensor::same_memory(const Tensor& other) const {
  return storage_ && address() == other.address() && bytes() == other.bytes();
}

bool Tensor::sole() const { return storage_.use_count() == 1; }

std::vector<double> Tensor::to_doubles() const {
  std::vector<double> values(static_cast<std::size_t>(size()));
  const auto read = [&]<class T>(T) {
    std::vector<T> host(values.size());
    backend().download(host.data(), address(), bytes());
    for (std::size_t i = 0; i < host.size(); ++i) {
      if constexpr (std::is_same_v<T, bf16>) {
        values[i] = static_cast<float>(host[i]);
      } else {
        values[i] = static_cast<double>(host[i]);
      }
    }
  };
  visit_dtype(dtype_, read);
  return values;
}

std::vector<std::int32_t> Tensor::to_ints() const {
  require(DType::i32);
  std::vector<std::int32_t> values(static_cast<std::size_t>(size()));
  backend().download(values.data(), address(), bytes());
  return values;
}

double Tensor::item() const {
  LONGHAND_CHECK(size() == 1, "item: expected one element, got shape ", shape_);
  return to_doubles().front();
}

Tensor empty_like(const Tensor& x) { return Tensor(x.backend(), x.shape(), x.dtype()); }

}  // namespace longhand
