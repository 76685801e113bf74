#pragma once

#include <cstring>
#include <functional>
#include <utility>

#include "core/forwarding.h"

/// A backend that runs another one's operations, altered: what a backend with a mistake would
/// compute.
namespace longhand {

template <class Op>
using Alteration = std::function<void(Op& op, const std::function<void(const Op&)>& run)>;

class AlteredBase : public Backend {
 public:
  explicit AlteredBase(std::shared_ptr<Backend> inner)
      : Backend("altered " + inner->name(), inner->options(), host_memory()),
        inner_(std::move(inner)) {}

  /// From now on `alteration` stands for Op.
  template <class Op>
  void alter(Alteration<Op> alteration) {
    std::get<Alteration<Op>>(alterations_) = std::move(alteration);
  }
  bool reached() const { return reached_; }  // an altered operation was run

  void require_dtype(DType dtype) const override { inner_->require_dtype(dtype); }
  void upload(void* device, const void* host, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(device, host, bytes);
  }
  void download(void* host, const void* device, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(host, device, bytes);
  }
  void synchronize() override {}

  template <class Op>
  void forward(const Op& op) {
    const Alteration<Op>& alteration = std::get<Alteration<Op>>(alterations_);
    if (!alteration) return inner_->run(op);
    reached_ = true;
    Op altered = op;
    alteration(altered, [this](const Op& what) { inner_->run(what); });
  }

 private:
  template <class... Ops>
  static std::tuple<Alteration<Ops>...> none(std::tuple<Ops...>*);
  using Alterations = decltype(none(static_cast<Contract*>(nullptr)));

  std::shared_ptr<Backend> inner_;  // of the host
  Alterations alterations_;
  bool reached_ = false;
};

template <class Op>
void dispatch(AlteredBase& backend, const Op& op) {
  backend.forward(op);
}

using AlteredBackend = Forwarding<AlteredBase>;

}  // namespace longhand
