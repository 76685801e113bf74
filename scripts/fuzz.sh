#!/bin/sh
# Builds the fuzz targets of tests/fuzz with clang under the address and undefined-behaviour
# sanitizers and runs each until it finds an error or reaches the limit. Prints a table and fails if
# an error was found.
#   scripts/fuzz.sh [MINUTES] [TARGET...]            runs each target for MINUTES (1)
#   scripts/fuzz.sh --runs EXECUTIONS [TARGET...]    runs each target on EXECUTIONS inputs
# All targets run if none is named. Inputs that reached new code are stored in build/fuzz/learned,
# inputs that caused an error in build/fuzz/findings.
set -eu
cd "$(dirname "$0")/.."

limit=-max_total_time=60
case ${1:-} in
  --runs)
    limit=-runs=$2
    shift 2
    ;;
  [0-9]*)
    limit=-max_total_time=$(($1 * 60))
    shift
    ;;
esac
if [ $# -eq 0 ]; then
  # shellcheck disable=SC2046  # one word a target
  set -- $(basename -s _fuzz.cpp tests/fuzz/*_fuzz.cpp)
fi

scripts/setup.sh fuzz
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz >&2

findings=build/fuzz/findings
failed=0
printf '%-20s %12s %14s %9s\n' target executions executions/s findings
export ASAN_OPTIONS="malloc_context_size=4:quarantine_size_mb=16"
for target; do
  learned=build/fuzz/learned/$target
  log=build/fuzz/$target.log
  mkdir -p "$learned" "$findings/$target"
  words=""
  [ ! -e "tests/fuzz/$target.dict" ] || words=-dict=tests/fuzz/$target.dict
  found=0
  # Most new code is reached with short inputs, so they are limited to 4 KiB. -entropic=0 disables the
  # weighting of inputs by rare features, which would take a third of the time. An input that takes a
  # minute or 1 GiB of memory counts as an error.
  # shellcheck disable=SC2086  # nothing, or one word
  build/fuzz/tests/fuzz/"${target}_fuzz" "$limit" $words -max_len=4096 -entropic=0 -timeout=60 \
    -rss_limit_mb=1024 -print_final_stats=1 -artifact_prefix="$findings/$target/" \
    "$learned" "tests/fuzz/corpus/$target" >"$log" 2>&1 || found=1
  number() { sed -n "s/^stat::$1: *//p" "$log" | tail -n 1; }
  printf '%-20s %12s %14s %9s\n' "$target" "$(number number_of_executed_units)" \
    "$(number average_exec_per_sec)" "$found"
  if [ "$found" = 1 ]; then
    failed=1
    grep -E 'SUMMARY|broken promise|Test unit written' "$log" || tail -n 5 "$log"
  fi
done
exit "$failed"
