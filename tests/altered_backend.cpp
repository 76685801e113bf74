#include "tests/altered_backend.h"

#include <algorithm>
#include <cstring>

#include "core/forwarding.h"

namespace longhand {
namespace {

struct Altered : AlteredBackend {
  using AlteredBackend::AlteredBackend;

  template <class Op>
  void forward(const Op& op) {
    const auto found = alterations_.find(Op::name);
    if (found == alterations_.end()) return inner_->run(op);
    found->second(*inner_, &op);
  }
};

template <class Op>
void dispatch(Altered& backend, const Op& op) {
  backend.forward(op);
}

}  // namespace

AlteredBackend::AlteredBackend(std::shared_ptr<Backend> inner)
    : Backend("altered " + inner->name(), inner->options(), host_memory()),
      inner_(std::move(inner)) {}

bool AlteredBackend::alters_any_of(const std::set<std::string_view>& operations) const {
  return std::ranges::any_of(
      alterations_, [&](const auto& alteration) { return operations.contains(alteration.first); });
}

void AlteredBackend::upload(void* device, const void* host, std::size_t bytes) {
  if (bytes > 0) std::memcpy(device, host, bytes);
}

void AlteredBackend::download(void* host, const void* device, std::size_t bytes) {
  if (bytes > 0) std::memcpy(host, device, bytes);
}

std::shared_ptr<AlteredBackend> make_altered_backend(std::shared_ptr<Backend> inner) {
  return std::make_shared<Forwarding<Altered>>(std::move(inner));
}

}  // namespace longhand
