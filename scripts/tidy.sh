#!/bin/sh
# Runs clang-tidy (.clang-tidy names the checks); any finding fails.
#   scripts/tidy.sh [FILE...]     by default all sources but the tests'
set -eu
cd "$(dirname "$0")/.."

# Only configured: clang reads the commands, but not another compiler's precompiled headers.
cmake -S . -B build/tidy -G Ninja -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
if [ $# -eq 0 ]; then
  # Files compiled once for each instruction set (*.simd.cpp, *.op.cpp) are left out.
  # So are those that need NVIDIA's headers.
  # shellcheck disable=SC2046  # one word a file
  set -- $(find core cuda autograd nn tasks apps -name '*.cpp' ! -name '*.simd.cpp' ! -name '*.op.cpp' \
    ! -path cuda/runtime.cpp ! -path cuda/products.cpp | sort)
fi
printf '%s\n' "$@" | xargs -n 4 -P "$(nproc)" clang-tidy -p build/tidy --quiet 2>/dev/null
echo "tidy: $# files, no finding"
