#!/bin/bash
# Tests scripts/long_runs.sh with a fake program that does not train. Invalid arguments are refused,
# each run is trained once, in pieces and in the order of the plan, and the plan contains only runs
# of recipes.
#   long_runs_test.sh SOURCE LONGHAND
set -eu
script=$1/scripts/long_runs.sh plan=$1/scripts/long_runs.plan longhand=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
  echo "long_runs_test: $*" >&2
  cat out err asked 2>/dev/null >&2
  exit 1
}
refused() {
  local words=$1 status=0
  shift
  "$script" "$@" >out 2>err || status=$?
  [ $status = 2 ] || fail "$*: expected status 2, got $status"
  grep -qF -- "$words" err || fail "expected '$words'"
}

# The fake program finishes a run in its second call, but never the run "broken".
cat >pretend <<EOF
#!/bin/bash
run=\$(sed 's/.*--only \([^ ]*\).*/\1/' <<<"\$*")
echo "\$2 \$4 \$run" >>"$work/asked"
[ \$run != broken ] || { echo "no luck" >&2; exit 1; }
finished=false
[ \$(grep -c " \$run\$" "$work/asked") -lt 2 ] || finished=true
echo "{\"rows\":[{\"run\":\"\$run\",\"finished\":\$finished}]}"
EOF
chmod +x pretend
cat >plan <<'EOF'
# RECIPE SCALE RUN
a/one extended broken
a/one extended first   # trained second
b/two laptop second
EOF
export LONG_RUNS_PLAN=$work/plan

refused "--out: expected a folder" --longhand ./pretend
refused "there is no program 'missing'" --longhand missing --out runs
refused "got '--what'" --what
refused "--workers has no value" --longhand ./pretend --out runs --workers

"$script" --longhand ./pretend --out runs --workers 1 >out 2>err || fail "expected status 0"
expected="a/one extended broken
a/one extended first
a/one extended first
b/two laptop second
b/two laptop second"
[ "$(cat asked)" = "$expected" ] || fail "expected other calls"
grep -q 'a-one-extended-broken: exit status 1' err || fail "a failure is not reported"
[ -x runs/bin/b-two-laptop-second ] || fail "the program that began a run is not kept"
"$script" --out runs --state >out 2>err || fail "--state: expected status 0"
[ "$(grep -c ' finished$' out)" = 2 ] || fail "two runs are finished"
grep -q 'broken .* to do$' out || fail "the broken run is to do"
: >asked
"$script" --longhand ./pretend --out runs --workers 2 >out 2>err || fail "expected status 0"
[ "$(cat asked)" = "a/one extended broken" ] || fail "finished runs were trained again"

unset LONG_RUNS_PLAN
sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$plan" | while read -r recipe scale run; do
  list=runs-$(tr / - <<<"$recipe")-$scale
  [ -e "$list" ] || "$longhand" repro "$recipe" --scale "$scale" --list-runs --json >"$list"
  grep -q "\"run\":\"$run\"" "$list" || fail "$recipe has no run $run at scale $scale"
done
echo "long_runs: order, pieces, once"
