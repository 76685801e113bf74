#!/bin/sh
# Formats every source file. With --check, names the files that are not formatted and fails if there
# are any.
set -eu
cd "$(dirname "$0")/.."

action="-i"
[ "${1:-}" = --check ] && action="--dry-run --Werror"
folders=""
for folder in core cuda autograd mpi nn tasks apps tests examples; do
  [ -d "$folder" ] && folders="$folders $folder"
done
# shellcheck disable=SC2086  # lists of words
find $folders \( -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
  xargs -0 -n 20 -P 2 clang-format $action
