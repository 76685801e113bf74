#!/bin/sh
# Installs packages, builds everything with warnings as errors and runs all tests.
#   scripts/test.sh [ctest arguments]
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh
cmake --preset release -DLONGHAND_WERROR=ON -DLONGHAND_UNITY=ON >/dev/null
cmake --build --preset release
ctest --preset release --parallel "$(nproc)" "$@"
