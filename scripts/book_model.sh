#!/bin/sh
# Trains the model of the book's page "Attention at work", the run apps/book/live/writer.
#   scripts/book_model.sh PROGRAM       PROGRAM: build/release/apps/longhand
# The text consists of the documents and comments of one commit, so the run can be repeated. With --math
# portable, it has the same bits on every machine. Takes about 10 minutes on two idle cores.
set -eu
program=$(realpath "$1")
cd "$(dirname "$0")/.."
commit=ededadd6452ab6c68ec69d4bcd224d68f756753c
run=$PWD/apps/book/live/writer
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git archive "$commit" | tar -x -C "$work"
cd "$work"

# Joins the lines of each paragraph of Markdown. Leaves out code, tables, headings and formulas.
# shellcheck disable=SC2016  # variables of awk
paragraphs='
function flush() { if (length(p) > 60) print p; p = "" }
/^```/ { code = !code; flush(); next }
code { next }
/^\$\$/ { formula = !($0 ~ /\$\$$/ && length($0) > 2) && !formula; flush(); next }
/\$\$$/ { formula = 0; next }
formula { next }
/^\|/ || /^#/ || /^</ || /^$/ { flush(); next }
/^ *([-*]|[0-9]+\.) / { flush(); sub(/^ *([-*]|[0-9]+\.) /, "") }
{ sub(/^ +/, ""); p = p (p == "" ? "" : " ") $0 }
END { flush() }'
# Joins the lines of each comment.
# shellcheck disable=SC2016  # variables of awk
comments='
/^ *\/\/\/?[^\/]/ { sub(/^ *\/\/\/? ?/, ""); if ($0 != "") { p = p (p == "" ? "" : " ") $0; next } }
{ if (length(p) > 60) print p; p = "" }'
export LC_ALL=C
find docs -name '*.md' -print0 | sort -z | xargs -0 cat README.md CONTRIBUTING.md | awk "$paragraphs" |
  sed -E 's/!?\[([^]]*)\]\([^)]*\)/\1/g; s/\*\*//g' | grep -v '\$.*\$.*\$.*\$' | tr -cd '\n -~' > text.txt
find core autograd nn tasks cuda apps tests examples \
  \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 | sort -z |
  xargs -0 awk "$comments" | tr -cd '\n -~' >> text.txt

"$program" train --task text --text text.txt --task.length 128 --width 48 --layers 4 --heads softmax:4 \
  --tied 1 --batch 16 --steps 12000 --rate 4e-3 --math portable --evaluate-minutes 0 \
  --evaluate-every 2000 --evaluate-samples 100 --quiet --out run
"$program" eval run --samples 100
# Only the parameters are needed. The state of the optimizer is three times as large.
rm -rf "$run"
step="step-12000"
mkdir -p "$run/checkpoints/$step"
cp run/config.ini "$run"
cp "run/checkpoints/$step/model.safetensors" "$run/checkpoints/$step"
