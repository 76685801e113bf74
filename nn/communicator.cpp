#include "nn/communicator.h"

namespace longhand::nn {
namespace {

class Alone final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void sum(std::span<const Tensor>) override {}
  void sum(std::span<double>) override {}
};

}  // namespace

Communicator& alone() {
  static Alone one;
  return one;
}

}  // namespace longhand::nn
