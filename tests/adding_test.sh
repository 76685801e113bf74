#!/bin/sh
# Extracts the mechanism of docs/adding.md from the page, builds a copy of the program with it and uses
# the mechanism as the page describes.
#   adding_test.sh SOURCE COMPILER OBJECTS_AND_LIBRARIES...
set -eu
source=$1 compiler=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Creates the folder of mixers as it would look with the page's file. The other files can be empty,
# because only their names are read.
mkdir -p "$work/mixers"
for file in "$source"/nn/mixers/*.cpp; do : > "$work/mixers/$(basename "$file")"; done
awk '/^```cpp file=nn\/mixers\/mean.cpp$/ { inside = 1; next } /^```$/ { inside = 0 } inside' \
  "$source/docs/adding.md" > "$work/mixers/mean.cpp"
[ -s "$work/mixers/mean.cpp" ]
cmake -DFOLDER="$work/mixers" -DTYPE=MixerKind -DSUFFIX=mixer -DFUNCTION=mixer_kinds \
  -DHEADER=nn/mixer_core/mixer.h -DNAMESPACE=longhand::nn -DOUTPUT="$work/list.cpp" -P "$source/cmake/parts_list.cmake"

for file in "$work/mixers/mean.cpp" "$work/list.cpp"; do
  "$compiler" -std=c++20 -O1 -Wall -Wextra -Werror -I"$source" -c "$file" -o "$file.o"
done
# The new list of mixers is linked before the library's list, so the linker ignores the library's list.
"$compiler" "$work/mixers/mean.cpp.o" "$work/list.cpp.o" "$@" -o "$work/longhand"

cd "$work"
./longhand train --help all | grep -q -e '--sharpness'
./longhand train --task flip-flop --task.instructions 8 --width 16 --layers 1 --steps 3 --batch 4 \
  --heads 'mean:2{sharpness=0.5},mean:2,softmax:1x4' --evaluate_samples 2 --quiet --out run
grep -q '^heads = mean:2{sharpness=0.5},mean:2,softmax:1x4$' run/config.ini
grep -q '^sharpness = 0$' run/config.ini
./longhand eval run --samples 2 --reading decoded | grep -q reads
./longhand inspect run --samples 2 --out page.html >inspected
echo "the mechanism of docs/adding.md trains, decodes and can be looked at"
