#!/bin/sh
# Runs the checks that take too long for every change (.ci/run): clang-tidy over all files, a thousand
# killed trainings, a thousand forged runs, other orders of threads in CUDA kernels for every type and
# math mode, the whole test suite under sanitizers with the kernels of every instruction set, fuzzing,
# arm64 in an emulator, and the packages, which are built twice and installed in a fresh root. Takes
# hours on two cores.
#   scripts/deep_check.sh [MINUTES]     fuzzes each target for MINUTES (10)
set -eu
cd "$(dirname "$0")/.."
minutes=${1:-10}

scripts/test.sh
scripts/setup.sh lint
scripts/tidy.sh
tests/kill_test.sh build/release/apps/longhand 1000
scripts/seeded_faults.sh --check
LONGHAND_FORGERIES=1000 build/release/tests/longhand_tests --run_test=forgeries_test \
  --log_level=message --color_output=no
LONGHAND_ALL_SETTINGS=1 build/release/tests/longhand_tests \
  --run_test=cuda_emulated_test/the_order_of_threads_changes_no_bit
for sanitizer in asan tsan; do
  cmake --preset "$sanitizer" >/dev/null
  cmake --build --preset "$sanitizer"
  ctest --preset "$sanitizer"
done
scripts/fuzz.sh "$minutes"
scripts/arm64.sh
scripts/release.sh --compare
tests/wheel_test.sh "$PWD" --wheel build/packages/longhand-*"_$(uname -m).whl" || [ $? = 77 ]  # 77: no pip
scripts/fresh_root.sh || [ $? = 77 ]  # 77: skipped, because it needs root
echo "deep_check: all passed"
