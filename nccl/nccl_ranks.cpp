// Plug-in with which ranks exchange device memory through NCCL. The program loads this plug-in if
// ranks train on GPUs. The interface is declared in nn/ranks/device_plugin.h.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdio>
#include <cstring>

#include "nn/ranks/device_plugin.h"

namespace {

ncclComm_t ranks = nullptr;
cudaStream_t stream = nullptr;

int told(ncclResult_t status, const char* doing, char* error, std::size_t size) {
  if (status == ncclSuccess) return 0;
  std::snprintf(error, size, "NCCL: %s: %s", doing, ncclGetErrorString(status));
  return 1;
}

int told(cudaError_t status, const char* doing, char* error, std::size_t size) {
  if (status == cudaSuccess) return 0;
  std::snprintf(error, size, "NCCL: %s: %s", doing, cudaGetErrorString(status));
  return 1;
}

int make_id(void* id, char* error, std::size_t size) {
  ncclUniqueId made;
  if (told(ncclGetUniqueId(&made), "making an id", error, size)) return 1;
  std::memcpy(id, &made, sizeof made);
  return 0;
}

int join(const void* id, int rank, int count, char* error, std::size_t size) {
  ncclUniqueId made;
  std::memcpy(&made, id, sizeof made);
  return told(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream", error,
              size) ||
         told(ncclCommInitRank(&ranks, count, made, rank), "joining", error, size);
}

int exchange(int peer, const void* send, std::size_t send_bytes, void* receive,
             std::size_t receive_bytes, char* error, std::size_t size) {
  if (told(ncclGroupStart(), "a group", error, size)) return 1;
  // Both ranks know the sizes of both transfers, so neither makes a call for an empty transfer.
  ncclResult_t status = ncclSuccess;
  if (send_bytes > 0) status = ncclSend(send, send_bytes, ncclUint8, peer, ranks, stream);
  if (status == ncclSuccess && receive_bytes > 0) {
    status = ncclRecv(receive, receive_bytes, ncclUint8, peer, ranks, stream);
  }
  const ncclResult_t ended = ncclGroupEnd();
  return told(status, "exchanging", error, size) || told(ended, "exchanging", error, size) ||
         told(cudaStreamSynchronize(stream), "exchanging", error, size);
}

void leave() {
  if (ranks) ncclCommDestroy(ranks);
  if (stream) cudaStreamDestroy(stream);
  ranks = nullptr;
  stream = nullptr;
}

}  // namespace

extern "C" const LonghandDeviceRanks* longhand_device_ranks() {
  static const LonghandDeviceRanks self{
      longhand_device_ranks_version, sizeof(ncclUniqueId), make_id, join, exchange, leave};
  return &self;
}
