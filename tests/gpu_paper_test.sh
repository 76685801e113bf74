#!/bin/bash
# Tests scripts/gpu_paper.sh with a fake program that does not train: refused arguments, the plan, the
# order of the recipes, and the continuation of an interrupted recipe. The script's list must contain all
# recipes of LONGHAND.
#   gpu_paper_test.sh SOURCE LONGHAND
set -eu
paper=$1/scripts/gpu_paper.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
  echo "gpu_paper_test: $*" >&2
  cat out err >&2
  exit 1
}
# runs STATUS WORDS...: runs the script, expects the exit status STATUS and writes its output to the
# files out and err.
runs() {
  local expected=$1 status=0
  shift
  "$paper" "$@" >out 2>err || status=$?
  [ $status = "$expected" ] || fail "$*: expected status $expected, got $status"
}
refused() {
  local words=$1
  shift
  runs 2 "$@"
  grep -qF -- "$words" err || fail "expected '$words'"
  [ "$(cat out err | wc -l)" = 1 ] || fail "expected one line"
}
says() { grep -q -- "$1" out || fail "expected '$1'"; }

# Some recipes are excluded, because they need a pretrained model or a text, or train nothing.
"$2" repro list | awk 'NR > 1 { print $1 }' |
  grep -vxE 'attentionspan/table2|chacal/table3|hinting/theorem5.1' | sort >out
sed -n '/^recipes="/,/"$/s/^\([a-z0-9.]*\(\/[a-z0-9.-]*\)\?\) [0-9].*/\1/p' "$paper" | sort >err
[ -s out ] && cmp -s out err || fail "its list of recipes (below) is not the program's (above)"

refused "there is no program $work/nowhere" --longhand nowhere
# The fake program computes 6e12 operations per minute. With it, each recipe stops in its first
# call, and the recipe hinting/table3 fails.
cat >longhand <<'EOF'
#!/bin/sh
case "$*" in
  version) echo "longhand 1" ;;
  bench*) echo '{"rows":[{"model":"x","gflops":100.0,"rounds":1}]}' ;;
  "repro chacal/table1 "*--list-runs*) echo '{"operations":6e+12,"rows":[]}' ;;
  *--list-runs*) echo '{"operations":1.2e+14,"rows":[]}' ;;
  "repro hinting/table3 "*) echo "longhand repro: no luck" >&2; exit 1 ;;
  *) echo "$2" >>asked
     if [ "$(grep -c "^$2$" asked)" = 1 ]; then echo '{"stopped":true}'; else echo '{"rows":[]}'; fi ;;
esac
EOF
sed -i "s|asked|$work/asked|g" longhand
chmod +x longhand
refused "got 'soon'" --longhand longhand --minutes soon
refused "expected smoke, laptop or paper" --longhand longhand --scale large
refused "there is no recipe fal/tabel1" --longhand longhand fal/tabel1
refused "--out has no value" --longhand longhand --out

runs 0 --longhand longhand --out results --plan
says '^chacal/table1 .* 1\.0 .* to do$'
says '^fal/table1 .* 20\.0 '
[ ! -e asked ] || fail "a plan trained something"
sed 's/6e+12/7e+12/' longhand >recounted && chmod +x recounted
runs 0 --longhand recounted --out results --plan
says '^chacal/table1 .* 1\.0 '  # counted in the first call, with a program of the same version
[ "$(sed -n 2p out | cut -d' ' -f1)" = chacal/table1 ] || fail "the best for its minutes is not the first"

runs 0 --longhand longhand --out results chacal/table1 fal/table1
[ "$(grep -c 'stopped; goes on at the next call' out)" = 2 ] || fail "two were stopped"
runs 0 --longhand longhand --out results chacal/table1 fal/table1
[ "$(grep -c ' done$' out)" = 2 ] || fail "two are done"
[ -e results/chacal-table1.done ] || fail "no mark"
runs 0 --longhand longhand --out results chacal/table1
[ "$(grep -c chacal/table1 asked)" = 2 ] || fail "what was done was done again"
runs 1 --longhand longhand --out results hinting/table3 fal/table1
says 'failed: longhand repro: no luck'
runs 0 --longhand longhand --out results --results "$work/back" --minutes 0 hinting/table1
cat back/results.tar.gz.* | tar tz | grep -q 'results/operations-' || fail "the counts did not come back"
says 'no time left for hinting/table1'
echo "gpu_paper: plans, stops, goes on"
