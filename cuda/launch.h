#pragma once

#include <cstdint>
#include <functional>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "cuda/stream.h"

namespace longhand::cuda {

/// The number of blocks of a launch, and the source location of the launch for error messages.
struct Grid {
  std::int64_t x, y, z;
  const char* file;
  int line;

  Grid(std::int64_t blocks_x, std::int64_t blocks_y = 1, std::int64_t blocks_z = 1,  // NOLINT
       const char* at_file = __builtin_FILE(), int at_line = __builtin_LINE())
      : x(blocks_x), y(blocks_y), z(blocks_z), file(at_file), line(at_line) {}
};

/// Returns false if the grid is empty. Throws an Error if some device for which kernels are
/// compiled does not allow a launch of this size.
bool worth_launching(const Grid& grid, int threads, std::size_t shared_bytes);

/// launch_kernel() enqueues a kernel on a stream of the device, and emulate_kernel() does the same
/// in the emulator. launch_kernel() receives the address of the kernel and, in `arguments`, a
/// pointer to each argument. emulate_kernel() receives a function without parameters that calls the
/// kernel with copies of its arguments. Each emulated thread calls this function.
void launch_kernel(Stream& stream, const Grid& grid, int threads, std::size_t shared_bytes,
                   const void* kernel, void** arguments);
void emulate_kernel(Stream& stream, const Grid& grid, int threads, std::size_t shared_bytes,
                    std::function<void()> kernel, const void* address);

/// kernel<<<grid, threads, shared_bytes, stream>>>(arguments...), with the arguments converted to
/// the kernel's parameter types. An empty grid launches nothing. `threads`, the number of threads
/// per block, is a multiple of 32 and at most 1024. shared_bytes and the kernel's static shared
/// memory are at most 99 KiB together, because some devices allow no more (shared_per_block).
template <class... Parameters, class... Arguments>
void launch(Stream& stream, const Grid& grid, int threads, std::size_t shared_bytes,
            void (*kernel)(Parameters...), Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments));
  if (!worth_launching(grid, threads, shared_bytes)) return;
  std::tuple<Parameters...> values(std::forward<Arguments>(arguments)...);
#if defined(LONGHAND_CUDA_EMULATED)
  emulate_kernel(
      stream, grid, threads, shared_bytes,
      [kernel, values = std::move(values)] { std::apply(kernel, values); },
      reinterpret_cast<const void*>(kernel));
#else
  const auto run = [&]<std::size_t... I>(std::index_sequence<I...>) {
    void* pointers[] = {const_cast<void*>(static_cast<const void*>(&std::get<I>(values)))...,
                        nullptr};
    launch_kernel(stream, grid, threads, shared_bytes, reinterpret_cast<const void*>(kernel),
                  pointers);
  };
  run(std::index_sequence_for<Parameters...>{});
#endif
}

}  // namespace longhand::cuda
