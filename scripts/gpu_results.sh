#!/bin/bash
# Puts a folder of results into one archive that a borrowed GPU machine gives back, in parts of 15 MiB:
#   scripts/gpu_results.sh FOLDER INTO
# Such a machine returns at most 8 files of 16 MiB, 64 MiB in all. Files below 1 MiB come first. The
# folder's subfolders with larger files, which hold checkpoints, follow from the smallest to the
# largest while there is room, and the others are named as left behind. Put together again:
#   cat INTO/NAME.tar.gz.* | tar xz
set -euo pipefail
[ $# = 2 ] && [ -d "$1" ] || { echo "gpu_results.sh: expected FOLDER INTO, with an existing FOLDER" >&2; exit 2; }
folder=$(cd "$1" && pwd)
mkdir -p "$2"
into=$(cd "$2" && pwd)
name=$(basename "$folder")
part=$((15 << 20)) room=$((56 << 20))  # some bytes are left for the archive's own

cd "$(dirname "$folder")"
list=$(mktemp)
trap 'rm -f "$list"' EXIT
find "$name" -type f -size -1024k -print >"$list"
used=$(tr '\n' '\0' <"$list" | xargs -0 -r stat -c %s | awk '{ sum += $1 } END { print sum + 0 }')
left=()
while read -r bytes sub; do
  if [ $((used + bytes)) -gt $room ]; then left+=("$sub ($((bytes >> 20)) MiB)"); continue; fi
  find "$sub" -type f -size +1023k -print >>"$list"
  used=$((used + bytes))
done < <(find "$name" -type f -size +1023k -printf '%s %h\n' |
  awk '{ bytes = $1; sub(/^[0-9]+ /, ""); sum[$0] += bytes } END { for (f in sum) print sum[f], f }' | sort -n)
rm -f "$into/$name.tar.gz".*
sort -u "$list" | tar cz -T - | split -b $part -d -a 2 - "$into/$name.tar.gz."
count=$(find "$into" -type f | wc -l)
bytes=$(find "$into" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }')
printf 'results: %d files, %d KiB in %s\n' "$count" $((bytes >> 10)) "$into"
for one in "${left[@]}"; do echo "left behind, no room: $one"; done
if [ "$count" -gt 8 ] || [ "$bytes" -gt $((64 << 20)) ]; then
  echo "gpu_results.sh: expected at most 8 files of 64 MiB in all in $into" >&2
  exit 1
fi
