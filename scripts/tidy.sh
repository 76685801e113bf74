#!/bin/sh
# Runs clang-tidy (.clang-tidy names the checks) over the sources of a build; any finding fails.
#   scripts/tidy.sh [BUILD [FILE...]]     BUILD: build/release; FILEs: all but tests
set -eu
cd "$(dirname "$0")/.."

build=${1:-build/release}
[ $# -gt 0 ] && shift
if [ ! -f "$build/compile_commands.json" ]; then
  echo "tidy: $build is not a build folder: it has no compile_commands.json" >&2
  exit 1
fi
if [ $# -eq 0 ]; then
  # Files that stand for one instruction set each (*.simd.cpp) are compiled five times: left out.
  set -- $(find core autograd nn tasks apps -name '*.cpp' ! -name '*.simd.cpp' 2>/dev/null | sort)
fi
printf '%s\n' "$@" | xargs -n 1 -P "$(nproc)" clang-tidy -p "$build" --quiet
echo "tidy: $# files, no finding"
