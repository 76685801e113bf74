#!/bin/sh
# Compiles the CUDA backend with nvcc for one architecture, if nvcc is installed. The tests run the
# backend's kernels in an emulator, which is built by another compiler, so they do not show whether nvcc
# accepts them. The backend is not linked, so core/ is not built again. The plug-in for NCCL is linked if
# the toolkit contains NCCL.
set -eu
cd "$(dirname "$0")/.."

mkdir -p build
cmake --preset cuda -B build/cuda-compiled -DCMAKE_CUDA_ARCHITECTURES=90-real \
  -DLONGHAND_WERROR=ON >build/cuda-compiled.log
if grep -q 'No nvcc' build/cuda-compiled.log; then
  echo "compile_cuda: there is no nvcc here; nothing is compiled"
  exit 0
fi
objects=$(ninja -C build/cuda-compiled -t targets all |
  sed -n 's|^\(cuda/CMakeFiles/longhand_cuda\.dir/.*\.o\): .*|\1|p')
[ -n "$objects" ] || {
  echo "compile_cuda: expected the backend's files in the build, got none" >&2
  exit 1
}
# shellcheck disable=SC2086  # one word a file
ninja -C build/cuda-compiled $objects
echo "compile_cuda: $(echo "$objects" | wc -w) files compiled for sm_90"
if ninja -C build/cuda-compiled -t targets all | grep -q '^apps/liblonghand_nccl\.so:'; then
  ninja -C build/cuda-compiled longhand_nccl
  echo "compile_cuda: the plug-in for NCCL compiled and linked"
fi
