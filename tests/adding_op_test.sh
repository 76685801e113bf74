#!/bin/sh
# Takes the files of the operation in docs/adding.md out of the page, builds a copy of the source with
# them in it and checks the operation on every backend.
#   adding_op_test.sh SOURCE WORK_FOLDER CMAKE_OPTIONS...
set -eu
source=$1 work=$2
shift 2
rm -rf "$work/source"
mkdir -p "$work/source/tests"
cp -R "$source/core" "$source/autograd" "$source/cuda" "$source/cmake" "$work/source"
cp "$source/tests/adding_op.cpp" "$work/source/tests"
cd "$work/source"

# part FILE: the block of the page that is marked with FILE.
part() {
  awk -v file="file=$1" '$1 ~ /^```/ && $2 == file { inside = 1; next } /^```$/ { inside = 0 } inside' \
    "$source/docs/adding.md"
}
files="core/contract/soft_cap.h core/contract/soft_cap.cpp core/reference/soft_cap.cpp
  core/cpu/soft_cap.op.cpp cuda/soft_cap.cu autograd/soft_cap.h autograd/soft_cap.cpp
  autograd/catalog/soft_cap.cpp"
for file in $files; do
  part "$file" >"$file"
  [ -s "$file" ]
done
# The lines of core/backend.h: + stands before the line that follows it, or instead of the one with -.
include=$(part core/backend.h | sed -n 's/^+\(#include .*\)/\1/p')
listed=$(part core/backend.h | sed -n 's/^+ *\(std::tuple.*\)/\1/p')
sed -i "s|^#include \"core/contract/softmax.h\"|$include\n&|; s|std::tuple<Fill,|$listed|" core/backend.h
grep -q 'std::tuple<SoftCap,' core/backend.h
if command -v clang-format >/dev/null; then
  # shellcheck disable=SC2086  # one word a file
  clang-format --dry-run --Werror --style=file:"$source/.clang-format" $files
fi

cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(longhand LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_EXTENSIONS OFF)
find_package(Threads REQUIRED)
find_package(nlohmann_json REQUIRED)
include(cmake/longhand.cmake)
add_subdirectory(core)
add_subdirectory(autograd)
add_subdirectory(cuda/emulator)
add_executable(adding_op tests/adding_op.cpp)
target_link_libraries(adding_op longhand::autograd longhand_cuda_emulated)
END
cmake -S . -B "$work/build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 \
  -DLONGHAND_STRONGEST_ISA=portable -DLONGHAND_WERROR=ON "$@" >"$work/configured.log"
cmake --build "$work/build" --target adding_op >"$work/built.log" || {
  tail -50 "$work/built.log" >&2
  exit 1
}
"$work/build/adding_op" soft_cap
echo "the operation of docs/adding.md has its gradient, and its parity on every backend"
