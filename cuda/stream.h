#pragma once

#include <cstddef>
#include <memory>

namespace longhand::cuda {

class Event;
class Graph;

/// A queue of work for the device. Work runs in the order in which it was enqueued, while the host
/// continues.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // copy() copies within device memory, upload() from pinned host memory to the device, and
  // download() from the device to host memory.
  void copy(void* to, const void* from, std::size_t bytes);
  void zero(void* to, std::size_t bytes);
  void upload(void* to, const void* from, std::size_t bytes);
  void download(void* to, const void* from, std::size_t bytes);

  /// Work that is enqueued from now on waits for the event.
  void wait(const Event& event);
  /// Blocks the host until all enqueued work is done.
  void synchronize();

  /// Until end_recording() is called, kernels, copies and zeroing are recorded instead of executed.
  void begin_recording();
  std::unique_ptr<Graph> end_recording();
  void drop_recording() noexcept;
  bool recording() const { return recording_; }

  void* handle() const { return handle_; }  // a cudaStream_t, except in the emulator

 private:
  void* handle_ = nullptr;
  bool recording_ = false;
};

/// A recording of a stream: kernels with their arguments, in order. A graph does not own the memory
/// that it uses.
class Graph {
 public:
  explicit Graph(void* handle) : handle_(handle) {}
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Enqueues the whole graph on the stream as a single launch.
  void launch(Stream& stream);

 private:
  void* handle_;  // a cudaGraphExec_t, except in the emulator
};

/// An event occurs when a stream has finished all work that was enqueued before record(). An event
/// that was never recorded counts as having occurred.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(Stream& stream);
  void synchronize();  // blocks the host until the event has occurred

  void* handle() const { return handle_; }  // a cudaEvent_t, except in the emulator

 private:
  void* handle_ = nullptr;
};

/// Host memory that the device can access directly.
class PinnedMemory {
 public:
  explicit PinnedMemory(std::size_t bytes);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  std::byte* data() const { return data_; }

 private:
  std::byte* data_;
};

}  // namespace longhand::cuda
