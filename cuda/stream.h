#pragma once

#include <cstddef>
#include <memory>

namespace longhand::cuda {

class Event;
class Graph;

/// A queue of the device: what is given to it runs in order, while the host goes on.
class Stream {
 public:
  Stream();
  // NOLINTNEXTLINE(performance-trivially-destructible): only the emulator's is
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Within device memory; from pinned host memory; to host memory.
  void copy(void* to, const void* from, std::size_t bytes);
  void zero(void* to, std::size_t bytes);
  void upload(void* to, const void* from, std::size_t bytes);
  void download(void* to, const void* from, std::size_t bytes);

  /// What is given from here on waits until the event has happened.
  void wait(const Event& event);
  /// The host waits until all that was given is done.
  void synchronize();

  /// From here on kernels, copies and zeroing are not done but recorded, until end_recording().
  void begin_recording();
  std::unique_ptr<Graph> end_recording();
  void drop_recording() noexcept;
  bool recording() const { return recording_; }

  void* handle() const { return handle_; }  // cudaStream_t

 private:
  void* handle_ = nullptr;
  bool recording_ = false;
};

/// What a stream recorded: kernels with their arguments, in order. The memory they work on is not
/// its own.
class Graph {
 public:
  explicit Graph(void* handle) : handle_(handle) {}
  // NOLINTNEXTLINE(performance-trivially-destructible)
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Gives all of it to the stream, at the cost of one launch.
  void launch(Stream& stream);

 private:
  void* handle_;  // cudaGraphExec_t
};

/// Happens when a stream has done all it was given before record(). One never recorded has
/// happened.
class Event {
 public:
  Event();
  // NOLINTNEXTLINE(performance-trivially-destructible): only the emulator's is
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(Stream& stream);
  void synchronize();  // the host waits for it

  void* handle() const { return handle_; }  // cudaEvent_t

 private:
  void* handle_ = nullptr;
};

/// Host memory that the device can read and write by itself.
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
