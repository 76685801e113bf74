#include "apps/bench/bench.h"
#include "apps/compute.h"
#include "core/contract/elementwise.h"
#include "core/contract/gather.h"
#include "core/contract/loss.h"
#include "core/contract/norm.h"
#include "core/contract/optimizer.h"
#include "core/contract/reduce.h"
#include "core/contract/softmax.h"

namespace longhand::app::tokenwise_benchmark {
namespace {

/// A timed kernel: its name, the bytes it must read and write, and a function that runs it.
struct Kernel {
  const char* name;
  double bytes;
  std::function<void()> run;
};

/// The kernels to be timed, on activations of shape [rows, n] and parameters of shape [n].
std::vector<Kernel> kernels(Backend& b, std::int64_t rows, std::int64_t n, DType type,
                            std::uint64_t seed) {
  const DType master = master_type(type);
  const auto activations = [&](std::uint64_t index) {
    return random_tensor(b, {rows, n}, type, seed + index);
  };
  const Tensor x = activations(0), y = activations(1), dx = activations(2);
  const Tensor gain = random_tensor(b, {n}, master, seed + 3);
  const Tensor bias = random_tensor(b, {n}, master, seed + 4);
  const Tensor dgain = empty_like(gain), dbias = empty_like(bias);
  const Tensor mean = Tensor::zeros(b, {rows}, master), rstd = Tensor::zeros(b, {rows}, master);
  const Tensor ids = random_indices(b, {rows}, static_cast<std::int32_t>(rows), seed + 5);
  const Tensor targets = random_indices(b, {rows, 1}, static_cast<std::int32_t>(n), seed + 6);
  const Tensor loss = Tensor::zeros(b, {1}, master), total = empty_like(loss);
  const Tensor one = Tensor::from(b, {1}, master, std::vector{1.0});
  const Tensor log_sum = Tensor::zeros(b, {rows, 1}, master);
  const Tensor table = random_tensor(b, {rows, n}, master, seed + 7);
  const Tensor w = random_tensor(b, {rows, n}, master, seed + 8), g = empty_like(w),
               m = Tensor::zeros(b, {rows, n}, master), v = Tensor::zeros(b, {rows, n}, master);
  b(Scale{.x = w, .alpha = 0.01, .y = g});
  // These forward passes compute mean, rstd and log_sum, which the backward kernels read.
  b(LayerNorm{.x = x, .gain = gain, .bias = bias, .y = y, .mean = mean, .rstd = rstd});
  b(CrossEntropy{
      .logits = x, .targets = targets, .loss = loss, .log_sum = log_sum, .total = total});

  const Tensor now = Tensor::from(b, {3}, w.dtype(), adam_now(1e-3, 1));
  const auto a = static_cast<double>(x.bytes()), p = static_cast<double>(w.bytes());
  return {
      {"add_bias with residual", 3 * a,
       [=, &b] {
         b(AddBias{x, bias, y, dx});
       }},
      {"gelu", 2 * a,
       [=, &b] {
         b(Activate{Activation::gelu, x, y});
       }},
      {"gelu_backward", 3 * a,
       [=, &b] {
         b(ActivateBackward{Activation::gelu, x, y, dx});
       }},
      {"gelu_tanh", 2 * a,
       [=, &b] {
         b(Activate{Activation::gelu_tanh, x, y});
       }},
      {"silu", 2 * a,
       [=, &b] {
         b(Activate{Activation::silu, x, y});
       }},
      {"layer_norm", 2 * a,
       [=, &b] {
         b(LayerNorm{.x = x, .gain = gain, .bias = bias, .y = y, .mean = mean, .rstd = rstd});
       }},
      {"layer_norm_backward", 3 * a,
       [=, &b] {
         b(LayerNormBackward{.x = x,
                             .gain = gain,
                             .mean = mean,
                             .rstd = rstd,
                             .dy = y,
                             .dx = dx,
                             .dgain = dgain,
                             .dbias = dbias});
       }},
      {"rms_norm", 2 * a, [=, &b] { b(RmsNorm{.x = x, .gain = gain, .y = y, .rstd = rstd}); }},
      {"softmax", 2 * a, [=, &b] { b(Softmax{.x = x, .y = y}); }},
      {"cross_entropy", a,
       [=, &b] {
         b(CrossEntropy{
             .logits = x, .targets = targets, .loss = loss, .log_sum = log_sum, .total = total});
       }},
      {"cross_entropy_backward", 2 * a,
       [=, &b] {
         b(CrossEntropyBackward{.logits = x,
                                .targets = targets,
                                .log_sum = log_sum,
                                .total = total,
                                .dloss = one,
                                .dlogits = dx});
       }},
      {"embedding", p + a, [=, &b] { b(Embedding{.table = table, .ids = ids, .y = y}); }},
      {"column_sum", a, [=, &b] { b(ColumnSum{.x = x, .y = dbias}); }},
      {"adamw", 7 * p,
       [=, &b] {
         b(Adam{
             .parameters = {w}, .gradients = {g}, .m = {m}, .v = {v}, .decay = {0.01}, .now = now});
       }},
  };
}

void run(const Arguments& arguments, Backend& backend, Report& report) {
  const double budget = budget_from(arguments);
  const DType type = type_from(arguments);
  // The default is 64 MiB of activations, which exceeds any cache.
  std::vector<std::vector<std::int64_t>> sizes{
      {(std::int64_t{64} << 20) / 1024 / static_cast<std::int64_t>(size_of(type)), 1024}};
  if (arguments.given("size")) {
    sizes.clear();
    for (const std::string& words : arguments.words("size")) {
      sizes.push_back(parse_sizes(words, 2));
    }
  }
  for (const auto& size : sizes) {
    const auto bytes = static_cast<std::size_t>(size[0] * size[1]) * size_of(type);
    const double copy = copy_rate(backend, budget, bytes);
    const auto add = [&](const char* name, double rate, const Timing& time) {
      report.add({{"kernel", name},
                  {"rows", size[0]},
                  {"columns", size[1]},
                  {"type", name_of(type)},
                  {"gigabytes", rate / 1e9},
                  {"share", rate / copy},
                  {"milliseconds", 1e3 * time.least},
                  {"median_milliseconds", 1e3 * time.median},
                  {"rounds", time.rounds}});
    };
    for (const Kernel& kernel : kernels(backend, size[0], size[1], type, seed_from(arguments))) {
      const Timing time = measure(backend, budget, kernel.run);
      add(kernel.name, kernel.bytes / time.least, time);
    }
    report.add({{"kernel", "copy of memory"},
                {"rows", size[0]},
                {"columns", size[1]},
                {"type", name_of(type)},
                {"gigabytes", copy / 1e9},
                {"share", 1.0},
                {"milliseconds", 2e3 * static_cast<double>(bytes) / copy}});
  }
}

const RegisterBenchmark benchmark{{.name = "tokenwise",
                                   .summary = "memory-bound kernels, compared with a memory copy",
                                   .sizes = "ROWS,COLUMNS",
                                   .columns = {{"kernel", "kernel"},
                                               {"rows", "rows"},
                                               {"columns", "columns"},
                                               {"type", "type"},
                                               {"gigabytes", "GB/s", "%.1f"},
                                               {"share", "of a copy's", "%.2f"},
                                               {"milliseconds", "ms", "%.3f"}},
                                   .run = run}};

}  // namespace
}  // namespace longhand::app::tokenwise_benchmark
