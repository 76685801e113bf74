#!/bin/sh
# Runs clang-tidy with the checks of .clang-tidy. Any finding is an error.
#   scripts/tidy.sh [FILE...]     checks all sources except the tests if no file is named
set -eu
cd "$(dirname "$0")/.."

# The build is configured but not built: clang needs the compile commands, and cannot read another
# compiler's precompiled headers.
cmake -S . -B build/tidy -G Ninja -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
if [ $# -eq 0 ]; then
  # Files that are compiled once for each instruction set (*.simd.cpp, *.op.cpp) and files that need
  # NVIDIA's headers are excluded.
  # shellcheck disable=SC2046  # one word a file
  set -- $(find core cuda autograd nn tasks apps -name '*.cpp' ! -name '*.simd.cpp' ! -name '*.op.cpp' \
    ! -path cuda/runtime.cpp ! -path cuda/products.cpp | sort)
fi
printf '%s\n' "$@" | xargs -n 4 -P "$(nproc)" clang-tidy -p build/tidy --quiet 2>/dev/null
echo "tidy: $# files, no finding"
