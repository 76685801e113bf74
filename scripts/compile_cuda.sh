#!/bin/sh
# Compiles the CUDA backend with nvcc for one architecture, if nvcc is installed. The tests run the
# backend's kernels in an emulator, which is built by another compiler, so they do not show whether nvcc
# accepts them. The backend is not linked, so core/ is not built again. The plug-in for NCCL is linked if
# the toolkit contains NCCL. The compilers optimize little, because the result is not used:
# chacal.cu takes 35 s instead of 121. --all and scripts/gpu_pack.sh optimize.
#   scripts/compile_cuda.sh                      for sm_90
#   scripts/compile_cuda.sh --all [SM ...]       the kernels for all architectures, or for these numbers
# With --all, the script prints a table of registers, spilled bytes and static shared memory of each kernel, and
# fails if one exceeds a limit (scripts/ptxas_table.awk). The six architectures take more than 20 minutes on two
# cores. The coverage test of the emulator adds dynamic to static shared memory and compares the sum with each
# architecture's limit.
set -eu
cd "$(dirname "$0")/.."

if [ "${1-}" = --all ]; then
  shift
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  [ -x "$nvcc" ] || {
    echo "compile_cuda: there is no nvcc here; nothing is compiled"
    exit 0
  }
  [ $# -gt 0 ] || set -- 80 86 89 90 100 120
  targets=""
  for sm; do targets="$targets -gencode arch=compute_$sm,code=sm_$sm"; done
  logs=build/cuda-compiled-all
  rm -rf $logs
  mkdir -p $logs
  # shellcheck disable=SC2016,SC2086  # expanded by the inner shell; one word an option
  find cuda -name '*.cu' | sort | xargs -P "$(nproc)" -I FILE sh -c '
    log=$1/$(echo "$2" | tr / -).log file=$2
    shift 2
    "$@" -c "$file" -o /dev/null >"$log" 2>&1 || { cat "$log" >&2; exit 255; }' \
    sh $logs FILE "$nvcc" -std=c++20 -O3 --expt-relaxed-constexpr -I. $targets -Xptxas -v
  cat $logs/*.log | awk -f scripts/ptxas_table.awk
  exit
fi

mkdir -p build
cmake --preset cuda -B build/cuda-compiled -DCMAKE_CUDA_ARCHITECTURES=90-real \
  -DCMAKE_CUDA_FLAGS_RELEASE="-Xcicc -O1 -Xptxas -O0" -DLONGHAND_WERROR=ON >build/cuda-compiled.log
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
