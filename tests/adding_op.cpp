#include <cstdio>
#include <memory>

#include "autograd/gradcheck.h"
#include "autograd/tolerance.h"
#include "cuda/emulator/backend.h"

// adding_op NAME: runs gradcheck on the operation NAME of the catalog, the table of ops with their
// test cases. Then compares the results of the other backends with those of the reference backend.
// Built by adding_op_test.sh.
int main(int argc, char** argv) {
  using namespace longhand;
  if (argc != 2) return 2;
  const catalog::Operation& operation = catalog::find(argv[1]);
  const auto reference = make_reference_backend();
  bool passed = true;
  const auto report = [&](const char* what, const GradcheckResult& result) {
    std::printf("%-14s %lld entries, %.2g of a bound, %.1e\n", what,
                static_cast<long long>(result.entries), result.bound, result.worst);
    passed = passed && result.passed() && result.entries > 0;
  };
  report("gradcheck", gradcheck(operation, *reference));
  const BackendOptions options{.threads = 2, .math = Math::exact};
  const auto cpu = make_cpu_backend(options), cuda = make_emulated_cuda_backend(options);
  for (const DType type : {DType::f32, DType::bf16}) {
    const double unit = tolerance::unit(operation, type, Math::exact);
    report(type == DType::f32 ? "cpu f32" : "cpu bf16",
           gradcheck_on(operation, *cpu, type, unit, *reference));
    report(type == DType::f32 ? "cuda f32" : "cuda bf16",
           gradcheck_on(operation, *cuda, type, unit, *reference));
  }
  return passed ? 0 : 1;
}
