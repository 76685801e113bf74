#!/bin/sh
# Installs a build to an empty prefix, then builds and runs examples/two_layer against it, as a
# stranger's project would.
#   install_test.sh SOURCE BUILD GENERATOR COMPILER FLAGS
set -eu
source=$1 build=$2 generator=$3 compiler=$4 flags=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" > "$work/log"
cmake -S "$source/examples/two_layer" -B "$work/build" -G "$generator" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$work/prefix" > "$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/build" > "$work/log" || { cat "$work/log"; exit 1; }
"$work/build/two_layer" > "$work/out"
cat "$work/out"

# It has learned: ln 2 = 0.69 is where knowing nothing would leave it.
awk '$1 == "step" { loss = $4 } END { exit !(loss != "" && loss < 0.2) }' "$work/out"

# What is installed is whole: every header compiles on its own.
for header in $(cd "$work/prefix/include/longhand" && find . -name '*.h'); do
  echo "#include \"$header\""
done > "$work/all.cpp"
"$compiler" -std=c++20 -fsyntax-only -I"$work/prefix/include/longhand" "$work/all.cpp"
