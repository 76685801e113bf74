#!/bin/sh
# Runs the library's tests under sanitizers: the suites of core/, of its file formats and of nn/ under the
# address and undefined-behaviour sanitizers, and training with two threads under the thread sanitizer.
# The first part compiles kernels for one instruction set, AVX2 where the processor has it, because all sets
# would take most of the time. The second part compiles only the portable kernels: all sets share the code that
# divides work among threads. scripts/deep_check.sh includes every set. Files are compiled in batches
# (LONGHAND_UNITY), as in scripts/test.sh.
#   scripts/sanitize.sh [address] [thread]     runs both if none is named
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- address thread
one=portable
! grep -q -w avx2 /proc/cpuinfo || one=avx2

for part; do
  case $part in
    address)
      cmake --preset asan -B build/asan-library -DLONGHAND_UNITY=ON \
        -DLONGHAND_WEAKEST_ISA=$one -DLONGHAND_STRONGEST_ISA=$one >/dev/null
      cmake --build build/asan-library --target longhand_library_tests
      # Two processes run the suites: the second runs each suite that the first does not. gradcheck_test
      # and attention_long_test look for wrong results, which the ordinary build finds, and take minutes
      # here.
      tests="build/asan-library/tests/longhand_library_tests --report_level=short --log_level=error"
      without='!gradcheck_test:!attention_long_test'
      $tests --run_test="a*,decoder_test,gemm_test,portable_test:$without" &
      status=0
      $tests --run_test="!a*:!decoder_test:!gemm_test:!portable_test:$without" || status=$?
      wait $! || status=$?
      [ $status = 0 ] || exit $status
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
