#include <cxxabi.h>

#include <cstdlib>

#include "cuda/check.h"
#include "cuda/cuda_backend.h"
#include "cuda/device_facts.h"
#include "cuda/launch.h"
#include "cuda/stream.h"

namespace longhand::cuda {
namespace {

cudaStream_t as_stream(void* handle) { return static_cast<cudaStream_t>(handle); }
cudaEvent_t as_event(void* handle) { return static_cast<cudaEvent_t>(handle); }

/// The kernel's name as written in the source, for error messages.
std::string name_of_kernel(const void* kernel) {
  const char* mangled = nullptr;
  if (cudaFuncGetName(&mangled, kernel) != cudaSuccess || mangled == nullptr) return "a kernel";
  int status = 0;
  char* const readable = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string name = status == 0 ? readable : mangled;
  std::free(readable);
  return name;
}

class DeviceMemory final : public MemorySource {
 public:
  void* allocate(std::size_t bytes) override {
    use_device();
    void* block = nullptr;
    const cudaError_t result = cudaMalloc(&block, bytes);
    if (result == cudaErrorMemoryAllocation) {
      // Returning nullptr reports the failure to the caller. CUDA has stored the error, too. It is
      // cleared here so that later launches do not report it.
      static_cast<void>(cudaGetLastError());
      return nullptr;
    }
    require(result, "allocating ", bytes, " bytes");
    return block;
  }
  // The device may still use the block, so cudaFree waits for the device.
  void release(void* block, std::size_t) noexcept override { static_cast<void>(cudaFree(block)); }
};

}  // namespace

void use_device() {
  static const int device = [] {
    int count = 0;
    require(cudaGetDeviceCount(&count), "counting devices");
    return own_device(count);
  }();
  thread_local int current = 0;
  if (current == device) return;
  require(cudaSetDevice(device), "choosing device ", device);
  current = device;
}

Stream::Stream() {
  use_device();
  cudaStream_t stream = nullptr;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  handle_ = stream;
}
Stream::~Stream() { static_cast<void>(cudaStreamDestroy(as_stream(handle_))); }

void Stream::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  use_device();
  require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, as_stream(handle_)),
          "a copy of ", bytes, " bytes");
}
void Stream::zero(void* to, std::size_t bytes) {
  if (bytes == 0) return;
  use_device();
  require(cudaMemsetAsync(to, 0, bytes, as_stream(handle_)), "zeroing ", bytes, " bytes");
}
void Stream::upload(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  use_device();
  require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, as_stream(handle_)),
          "an upload of ", bytes, " bytes");
}
void Stream::download(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  use_device();
  require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, as_stream(handle_)),
          "a download of ", bytes, " bytes");
}
void Stream::wait(const Event& event) {
  require(cudaStreamWaitEvent(as_stream(handle_), as_event(event.handle())),
          "waiting for an event");
}
void Stream::synchronize() {
  require(cudaStreamSynchronize(as_stream(handle_)), "waiting for the device");
}

// The relaxed mode allows allocations during the recording.
void Stream::begin_recording() {
  use_device();
  require(cudaStreamBeginCapture(as_stream(handle_), cudaStreamCaptureModeRelaxed),
          "beginning to record");
  recording_ = true;
}
std::unique_ptr<Graph> Stream::end_recording() {
  recording_ = false;
  cudaGraph_t graph = nullptr;
  require(cudaStreamEndCapture(as_stream(handle_), &graph), "ending a recording");
  cudaGraphExec_t ready = nullptr;
  const cudaError_t result = cudaGraphInstantiate(&ready, graph, 0);
  static_cast<void>(cudaGraphDestroy(graph));
  require(result, "making a recording ready");
  return std::make_unique<Graph>(ready);
}
void Stream::drop_recording() noexcept {
  recording_ = false;
  cudaGraph_t graph = nullptr;
  static_cast<void>(cudaStreamEndCapture(as_stream(handle_), &graph));
  if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
  static_cast<void>(cudaGetLastError());  // clears the error of an invalid recording
}

// A graph that is still running is freed when it ends.
Graph::~Graph() { static_cast<void>(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(handle_))); }
void Graph::launch(Stream& stream) {
  use_device();
  require(cudaGraphLaunch(static_cast<cudaGraphExec_t>(handle_), as_stream(stream.handle())),
          "repeating a recording");
}

Event::Event() {
  use_device();
  cudaEvent_t event = nullptr;
  require(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event");
  handle_ = event;
}
Event::~Event() { static_cast<void>(cudaEventDestroy(as_event(handle_))); }
void Event::record(Stream& stream) {
  require(cudaEventRecord(as_event(handle_), as_stream(stream.handle())), "recording an event");
}
void Event::synchronize() {
  require(cudaEventSynchronize(as_event(handle_)), "waiting for the device");
}

PinnedMemory::PinnedMemory(std::size_t bytes) {
  use_device();
  void* block = nullptr;
  require(cudaMallocHost(&block, bytes), bytes, " bytes of pinned host memory");
  data_ = static_cast<std::byte*>(block);
}
PinnedMemory::~PinnedMemory() { static_cast<void>(cudaFreeHost(data_)); }

void launch_kernel(Stream& stream, const Grid& grid, int threads, std::size_t shared_bytes,
                   const void* kernel, void** arguments) {
  use_device();
  constexpr std::size_t without_asking = std::size_t{48} << 10;
  if (shared_bytes > without_asking) {
    const cudaError_t allowed = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    if (allowed != cudaSuccess) {
      require(allowed, name_of_kernel(kernel), " with ", shared_bytes, " bytes of shared memory");
    }
  }
  const dim3 blocks(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y),
                    static_cast<unsigned>(grid.z));
  const cudaError_t result = cudaLaunchKernel(kernel, blocks, dim3(static_cast<unsigned>(threads)),
                                              arguments, shared_bytes, as_stream(stream.handle()));
  if (result != cudaSuccess) {
    require(result, name_of_kernel(kernel), " with ", grid.x, " x ", grid.y, " x ", grid.z,
            " blocks of ", threads, " threads");
  }
}

std::vector<DeviceFacts> find_devices() {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  int driver = 0, runtime = 0;
  static_cast<void>(cudaDriverGetVersion(&driver));
  static_cast<void>(cudaRuntimeGetVersion(&runtime));
  const auto version = [](int number) { return text(number / 1000, '.', number % 1000 / 10); };
  LONGHAND_CHECK(driver != 0, "cuda: no NVIDIA driver is installed");
  LONGHAND_CHECK(result != cudaErrorInsufficientDriver,
                 "cuda: the NVIDIA driver is too old: it supports CUDA ", version(driver),
                 ", this program needs ", version(runtime));
  LONGHAND_CHECK(result != cudaErrorNoDevice && (result != cudaSuccess || count > 0),
                 "cuda: no NVIDIA GPU is visible");
  require(result, "looking for devices");
  std::vector<DeviceFacts> all;
  const int own = own_device(count);
  for (int n = 0; n < count; ++n) {
    const int i = (own + n) % count;
    cudaDeviceProp properties{};
    require(cudaGetDeviceProperties(&properties, i), "asking device ", i);
    DeviceFacts facts{.name = properties.name,
                      .major = properties.major,
                      .minor = properties.minor,
                      .multiprocessors = properties.multiProcessorCount,
                      .shared_per_block = properties.sharedMemPerBlockOptin,
                      .shared_per_multiprocessor = properties.sharedMemPerMultiprocessor,
                      .memory = properties.totalGlobalMem};
    if (n == 0) {  // free memory is known only for device 0, which this process uses
      use_device();
      std::size_t total = 0;
      require(cudaMemGetInfo(&facts.free, &total), "asking ", facts.name, " for its memory");
    }
    all.push_back(facts);
  }
  LONGHAND_CHECK(all.front().major >= 8,
                 "cuda: expected a GPU of compute capability 8.0 or later, got ", all.front().name,
                 " with ", all.front().major, '.', all.front().minor);
  return all;
}

std::unique_ptr<MemorySource> device_memory() { return std::make_unique<DeviceMemory>(); }

}  // namespace longhand::cuda

namespace longhand {

std::shared_ptr<Backend> make_cuda_backend(BackendOptions options) {
  return cuda::make_device_backend(options);
}

}  // namespace longhand
