#!/bin/sh
# Extracts the files of the operation in docs/adding.md from the page, builds a copy of the library
# with them and checks the operation on every backend. The copy excludes the other families of the
# catalog and the kernels of other operations: the check does not run them, and compiling them would
# take most of the time.
#   adding_op_test.sh SOURCE WORK_FOLDER CMAKE_OPTIONS...
set -eu
unset LONGHAND_CPU  # the copy contains the portable kernels only
source=$1 work=$2
shift 2
rm -rf "$work"
mkdir -p "$work/source/tests"
cp -R "$source/core" "$source/autograd" "$source/cuda" "$source/cmake" "$work/source"
cp "$source/tests/adding_op.cpp" "$work/source/tests"
cd "$work/source"
find autograd/catalog -name '*.cpp' ! -name catalog.cpp ! -name heads.cpp -delete
find core/cpu -name '*.cpp' ! -path '*/elementwise/*' ! -name combine.op.cpp ! -name cpu_backend.cpp \
  ! -name isa.cpp ! -name kept_panels.cpp ! -name workspace.cpp -delete
find cuda -name '*.cu' ! -name elementwise.cu ! -name combine.cu ! -name rearrange.cu -delete

# part FILE: prints the block of the page that is marked with FILE.
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
# Changes the headers as the diff on the page does. A line with + is inserted before the line that
# follows it in the diff, or replaces the line with -.
include=$(part core/contract/all.h | sed -n 's/^+\(#include .*\)/\1/p')
sed -i "s|^#include \"core/contract/softmax.h\"|$include\n&|" core/contract/all.h
grep -q 'core/contract/soft_cap.h' core/contract/all.h
listed=$(part core/backend.h | sed -n 's/^+ *\(struct .*\)/\1/p')
sed -i "s|struct Fill,|$listed|" core/backend.h
grep -q 'struct SoftCap,' core/backend.h
if command -v clang-format >/dev/null; then
  # shellcheck disable=SC2086  # one word a file
  clang-format --dry-run --Werror --style=file:"$source/.clang-format" $files
fi

# left_out FOLDER BACKEND NAMESPACE: prints a run() that fails for each operation whose kernel is
# excluded.
left_out() {
  printf '#include "%s"\n#include "core/error.h"\nnamespace longhand::%s {\n' \
    "$1/$(echo "$3" | tr A-Z a-z)_backend.h" "$3"
  sed -n '/^using Contract =/,/;/p' core/backend.h | sed 's/.*std::tuple<//; s/>;.*//; s/struct //g' |
    tr -d ' \n' | tr ',' '\n' | while read -r op || [ -n "$op" ]; do
      case $op in using*) continue ;; esac
      grep -rqE "run\($2&[a-z ]*, const $op&" "$1" ||
        echo "void run($2&, const $op&) { fail(\"$op: left out of this build\"); }"
    done
  echo "}  // namespace longhand::$3"
}
left_out core/cpu CpuBackend cpu >core/cpu/left_out.cpp
left_out cuda CudaBackend cuda >cuda/left_out.cu

cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(longhand LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_EXTENSIONS OFF)
find_package(Threads REQUIRED)
set(LONGHAND_THREADS pool)
include(cmake/longhand.cmake)
set(longhand_isa_optimization -O0)
add_subdirectory(core)
add_subdirectory(autograd)
add_subdirectory(cuda/emulator)
add_executable(adding_op tests/adding_op.cpp)
target_link_libraries(adding_op longhand::autograd longhand_cuda_emulated)
END
cmake -S . -B "$work/build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 \
  -DLONGHAND_STRONGEST_ISA=portable -DLONGHAND_UNITY=ON -DLONGHAND_WERROR=ON "$@" >"$work/configured.log"
cmake --build "$work/build" --target adding_op >"$work/built.log" || {
  tail -50 "$work/built.log" >&2
  exit 1
}
"$work/build/adding_op" soft_cap
echo "the operation of docs/adding.md has its gradient, and its parity on every backend"
