#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "core/backend.h"

namespace longhand {

/// A backend with deliberate bugs: it runs the operations of another backend and alters some of
/// them. Created by make_altered_backend().
class AlteredBackend : public Backend {
 public:
  explicit AlteredBackend(std::shared_ptr<Backend> inner);

  /// After this call, alteration(op, run) is called in place of every operation of type Op. The
  /// alteration can change `op`, and can call run(op) to execute it on the original backend.
  template <class Op, class Alteration>
  void alter(Alteration alteration) {
    alterations_[Op::name] = [alteration](Backend& inner, const void* op) mutable {
      Op altered = *static_cast<const Op*>(op);
      alteration(altered, [&inner](const Op& what) { inner.run(what); });
    };
  }
  bool alters_any_of(const std::set<std::string_view>& operations) const;

  void require_dtype(DType dtype) const override { inner_->require_dtype(dtype); }
  void upload(void* device, const void* host, std::size_t bytes) override;
  void download(void* host, const void* device, std::size_t bytes) override;
  void synchronize() override {}

 protected:
  std::shared_ptr<Backend> inner_;  // the original backend, whose memory the host can read
  std::map<std::string_view, std::function<void(Backend& inner, const void* op)>> alterations_;
};

std::shared_ptr<AlteredBackend> make_altered_backend(std::shared_ptr<Backend> inner);

}  // namespace longhand
