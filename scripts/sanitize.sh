#!/bin/sh
# Runs the library under sanitizers: the suites of core/, its files and nn/ under the address and
# undefined-behaviour sanitizers, and a training on two threads under the thread sanitizer. Kernels end
# with AVX2 for the first, because compiling all sets would take longer than all else, and with the
# portable set for the second: all sets share the code that divides work among threads.
# scripts/deep_check.sh has every set. Files are compiled in batches (LONGHAND_UNITY), as in
# scripts/test.sh.
#   scripts/sanitize.sh [address] [thread]     both if none is named
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- address thread
strongest=""
[ "$(uname -m)" != x86_64 ] || strongest=avx2

for part; do
  case $part in
    address)
      cmake --preset asan -B build/asan-library -DLONGHAND_UNITY=ON \
        -DLONGHAND_STRONGEST_ISA=$strongest >/dev/null
      cmake --build build/asan-library --target longhand_library_tests
      # Wrong results are the ordinary build's to find, and these take minutes.
      build/asan-library/tests/longhand_library_tests --report_level=short --log_level=error \
        --run_test='!gradcheck_test:!parity_test:!attention_long_test'
      ;;
    thread)
      cmake --preset tsan -B build/tsan-library -DLONGHAND_UNITY=ON \
        -DLONGHAND_STRONGEST_ISA=portable >/dev/null
      cmake --build build/tsan-library --target longhand_two_threads
      TSAN_OPTIONS=halt_on_error=1 build/tsan-library/tests/longhand_two_threads
      ;;
    *)
      echo "sanitize: expected address or thread, got $part" >&2
      exit 2
      ;;
  esac
done
