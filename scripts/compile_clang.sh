#!/bin/sh
# Compiles every C++ file with clang as well, without generating code: the fuzz targets
# (scripts/fuzz.sh) and clang-tidy need clang to accept the sources. Files are compiled in batches
# with the portable kernels.
#   scripts/compile_clang.sh [WORD]     only batches whose command contains WORD
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh fuzz
folder=build/clang-compiled
mkdir -p "$folder"
cmake -S . -B "$folder" -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_CXX_COMPILER_LAUNCHER= \
  -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DLONGHAND_UNITY=ON -DLONGHAND_UNITY_FILES=24 \
  -DLONGHAND_STRONGEST_ISA=portable -DLONGHAND_THREADS=pool \
  >"$folder/configured.log"
# Some files are written by the build. Ninja would first build the libraries to which these files belong, so
# the script runs the commands itself.
# shellcheck disable=SC2046  # one word a file
ninja -C "$folder" -t commands $(ninja -C "$folder" -t targets rule CUSTOM_COMMAND | grep '\.cpp$') |
  grep '^cd .* -P [^ ]*\.cmake$' >"$folder/writers"
sh -e "$folder/writers"
ninja -C "$folder" -t commands | sed -n 's| -o [^ ]*\.o -c \([^ ]*\)$| -w -fsyntax-only \1|p' |
  grep -e "${1:-}" | sort -u >"$folder/commands"
[ -s "$folder/commands" ] || {
  echo "compile_clang: expected compile commands, got none" >&2
  exit 1
}
cd "$folder"
tr '\n' '\0' <commands | xargs -0 -P "$(nproc)" -n 1 sh -c || {
  echo "compile_clang: clang refused a file" >&2
  exit 1
}
echo "compile_clang: $(wc -l <commands) batches compiled"
