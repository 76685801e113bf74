#!/bin/bash
# Checks the section "A rule of attention" of docs/adding.md: each rule of core/contract/attention.h has the
# files that the section names, and no other file of the product names its structs. Softmax is not
# checked, because other mechanisms use its rule too.
#   adding_rule_test.sh SOURCE
set -euo pipefail
cd "$1"

# The names of files in the N-th table of the section, one per line. A name without a folder is in the
# folder of the name before it.
table() {
  awk -v wanted="$1" '/^## /{inside = /^## A rule of attention/; number = 0; next}
    inside && /^\| file /{++number}
    inside && number == wanted && /^\| `/{split($0, cell, "|"); print cell[2]}' docs/adding.md |
    grep -o '`[^`]*`' | tr -d '`' | awk '/\//{folder = $0; sub(/[^\/]*$/, "", folder); print; next} {print folder $0}'
}
edited=$(table 1) own=$(table 2)
[ "$(wc -l <<<"$edited")" -ge 2 ] && [ "$(wc -l <<<"$own")" -ge 8 ] || {
  echo "adding_rule: docs/adding.md: expected two tables of files, got '$edited' and '$own'" >&2
  exit 1
}

rules=$(tr '\n' ' ' <core/contract/attention.h | grep -o 'AttentionRule = *std::variant<[^>]*>' |
  grep -o '[A-Z][A-Za-z]*Rule\b' | sed 's/Rule$//' | grep -vx 'Attention\|Softmax')
[ "$(wc -l <<<"$rules")" -ge 4 ] || {
  echo "adding_rule: expected at least four rules besides softmax, got '$rules'" >&2
  exit 1
}
for rule in $rules; do
  name=$(sed 's/\([a-z]\)\([A-Z]\)/\1_\2/g' <<<"$rule" | tr '[:upper:]' '[:lower:]')
  allowed=$edited
  while read -r file; do
    file=${file//NAME/$name}
    # Heads have the name that --heads accepts, which may be shorter than the name of the rule.
    case $file in nn/mixers/*) file=$(grep -l "\b${rule}Vars\b" nn/mixers/*.cpp || echo "$file") ;; esac
    [ -f "$file" ] || {
      echo "adding_rule: docs/adding.md names $file for the rule $rule, but there is no such file" >&2
      exit 1
    }
    allowed+=$'\n'$file
  done <<<"$own"
  others=$(grep -rlE "\b$rule(Rule|Gradient|Vars)\b" core cuda autograd nn apps tasks --include='*.h' \
    --include='*.cpp' --include='*.cu' | grep -vxF "$allowed" || true)
  [ -z "$others" ] || {
    echo "adding_rule: expected the structs of the rule $rule only in the files of docs/adding.md, also in:" $others >&2
    exit 1
  }
done
echo "adding_rule:" $rules "have the files of docs/adding.md and no others"
