#!/bin/sh
# Takes the mechanism of docs/adding.md out of the page, builds it into a copy of the program and
# uses it as the page says.
#   adding_test.sh SOURCE COMPILER OBJECTS_AND_LIBRARIES...
set -eu
source=$1 compiler=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The folder of mixers as it would be with that file in it.
mkdir -p "$work/mixers"
for file in "$source"/nn/mixers/*.cpp; do : > "$work/mixers/$(basename "$file")"; done
awk '/^```cpp file=nn\/mixers\/mean.cpp$/ { inside = 1; next } /^```$/ { inside = 0 } inside' \
  "$source/docs/adding.md" > "$work/mixers/mean.cpp"
[ -s "$work/mixers/mean.cpp" ]
cmake -DFOLDER="$work/mixers" -DTYPE=MixerKind -DSUFFIX=mixer -DFUNCTION=mixer_kinds \
  -DHEADER=nn/mixing/mixer.h -DNAMESPACE=longhand::nn -DOUTPUT="$work/list.cpp" -P "$source/cmake/parts_list.cmake"

for file in "$work/mixers/mean.cpp" "$work/list.cpp"; do
  "$compiler" -std=c++20 -O1 -Wall -Wextra -Werror -I"$source" -c "$file" -o "$file.o"
done
# The list comes before the library's own, which is then not taken.
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
