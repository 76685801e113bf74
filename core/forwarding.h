#pragma once

#include <tuple>

#include "core/backend.h"
#include "core/contract/all.h"
#include "core/one_thread.h"

namespace longhand {

template <class Base, class Op>
void forward_to(Base& base, const Op& op) {
  dispatch(base, op);
}

/// Implements the virtual functions run(op) of a backend class Base, one for every operation of the
/// contract (core/contract/all.h). Each of them calls dispatch(Base&, op), which is found in Base's
/// namespace. If another thread is running an operation on this backend, run() throws an Error.
/// Example:
///
///   class Named : public Backend {...};  // a backend without its operations
///   template <class Op>
///   void dispatch(Named& backend, const Op& op) {...}
///
///   std::make_shared<Forwarding<Named>>(...);
template <class Base, class List = Contract>
class Forwarding;

template <class Base>
class Forwarding<Base, std::tuple<>> : public Base {
 public:
  using Base::Base;

 protected:
  OneThread one_thread_;
};

template <class Base, class Op, class... Rest>
class Forwarding<Base, std::tuple<Op, Rest...>> : public Forwarding<Base, std::tuple<Rest...>> {
 public:
  using Forwarding<Base, std::tuple<Rest...>>::Forwarding;
  using Forwarding<Base, std::tuple<Rest...>>::run;
  void run(const Op& op) override {
    const OneThread::Call call(this->one_thread_, this->name(), Op::name);
    forward_to(static_cast<Base&>(*this), op);
  }
};

}  // namespace longhand
