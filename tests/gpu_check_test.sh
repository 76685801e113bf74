#!/bin/bash
# Tests scripts/gpu_check.sh without a GPU. Checks refused arguments and, with fake programs that
# report a GPU, the steps and the reports.
#   gpu_check_test.sh SOURCE LONGHAND
set -eu
check=$1/scripts/gpu_check.sh
longhand=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
  echo "gpu_check_test: $*" >&2
  cat out err >&2
  exit 1
}
# runs STATUS WORDS...: runs the script, expects the exit status STATUS and writes its output to the
# files out and err.
runs() {
  local expected=$1 status=0
  shift
  "$check" "$@" >out 2>err || status=$?
  [ $status = "$expected" ] || fail "$*: expected status $expected, got $status"
}
# says TEXT: expects a single line of output, on standard error, that contains TEXT.
says() {
  grep -qF -- "$1" err || fail "expected '$1'"
  [ "$(cat out err | wc -l)" = 1 ] || fail "expected one line"
}
# step NAME STATUS FILE: expects that the step ended with STATUS according to the report FILE.
step() {
  grep -qF "{\"name\":\"$1\",\"status\":\"$2\"" "results/$3.json" || fail "$1 is not $2 in $3.json"
}
no_step() {
  ! grep -qF "\"name\":\"$1\"" "results/$2.json" || fail "$1 ran"
}

runs 2 --part most
says "--part: expected all, checks or speed, got 'most'"
runs 2 --minutes soon
says "--minutes: expected a number, got 'soon'"
runs 2 --speed 3
says "got '--speed'"
runs 2 --out
says "--out has no value"
runs 1 --binaries nowhere
says "there is no program $work/nowhere/longhand"

mkdir real fake
cp "$longhand" real/longhand
cp /bin/true real/longhand_tests
if ! real/longhand info --json | grep -q '"devices"'; then
  runs 1 --binaries real --out results
  says "gpu_check.sh: cuda: "
fi

cat >fake/longhand <<'EOF'
#!/bin/sh
case $1 in
  info) echo '{"backends":[{"name":"cuda","available":true,"devices":["NVIDIA Nothing"]}]}' ;;
  bench) echo '{"rows":[{"kernel":"gelu","share":0.91},{"work":"a token, bytes","tokens_per_second":1e3}]}' ;;
esac
EOF
cat >fake/longhand_tests <<'EOF'
#!/bin/sh
case $* in *training_repeats*) exit 3 ;; esac
EOF
cat >fake/compute-sanitizer <<'EOF'
#!/bin/sh
exit 0
EOF
# This fake Python reports a GPU, and fails for one of the scripts.
cat >fake/python <<'EOF'
#!/bin/sh
case $* in *product_peers*) exit 1 ;; *peers*) echo "| a table |" ;; esac
EOF
chmod +x fake/*
PATH=$work/fake:$PATH

runs 1 --binaries fake --out results --python fake/python
for name in copies models recorded decoded parity training-bf16 attention decoding tokenwise-f32 memcheck; do
  step $name passed check
done
step repeats failed check
step products failed check
grep -qF "| a table |" out || fail "no table"
grep -qF "gelu,0.91" out || fail "no shares"
grep -qF "a token, bytes:1e3" out || fail "no tokens a second"
grep -qF '"device":"NVIDIA Nothing"' results/check.json || fail "no device"

runs 1 --part checks --binaries fake --out results --python fake/python
step parity passed checks
no_step attention checks
runs 0 --part speed --binaries fake --out results --python false
step pytorch skipped speed
step attention passed speed
no_step parity speed
runs 0 --minutes 0 --binaries fake --out results --python fake/python
step copies skipped check
step tokenwise-bf16 skipped check

# The programs are packed for a borrowed machine and run from the package. The results come back as
# one archive, which must not exceed the limits for returned files.
pack=$1/scripts/gpu_pack.sh
runs_pack() {
  local expected=$1 status=0
  shift
  "$pack" "$@" >out 2>err || status=$?
  [ $status = "$expected" ] || fail "gpu_pack $*: expected status $expected, got $status"
}
runs_pack 2 --binary fake
runs_pack 1 --binaries nowhere --into "$work/pack"
says "there is no program $work/nowhere/longhand"
runs_pack 0 --binaries fake --into "$work/pack"
grep -qF "scripts/gpu_check.sh --part checks --binaries $work/pack/binaries.tar.xz" out || fail "no command"
[ "$(awk '/^  scripts/ { if (length($0) > 2000) n++ } END { print n + 0 }' out)" = 0 ] || fail "a command is too long"
mkdir heavy && cp fake/* heavy/ && head -c 66000000 /dev/urandom >>heavy/longhand_tests
XZ_OPT=-0 runs_pack 1 --binaries heavy --into "$work/heavy-pack"
grep -qF "expected at most 64 MiB" err || fail "64 MiB were not enforced"

mkdir back
runs 0 --part speed --binaries pack/binaries.tar.xz --out loan --results back --python false
[ "$(find back -type f | wc -l)" = 1 ] || fail "expected one file back"
cat back/loan.tar.gz.* | tar tz >listed
grep -qx loan/speed.json listed || fail "the report is not in the archive"
! grep -q 'longhand_tests' listed || fail "programs came back"

results=$1/scripts/gpu_results.sh
mkdir -p many/a/b many/c
head -c 33000000 /dev/urandom >many/a/b/part && head -c 33000000 /dev/urandom >many/c/part && echo 1 >many/c/small
rm -rf back && "$results" many back >out 2>err || fail "gpu_results failed"
grep -q '^left behind, no room: many/[ac]' out || fail "expected a folder to be left behind"
[ -z "$(find back -size +16384k)" ] || fail "a file is larger than 16 MiB"
[ "$(find back -type f | wc -l)" -le 8 ] || fail "more than 8 files"
cat back/many.tar.gz.* | tar tz | grep -qx many/c/small || fail "a small file was left behind"
echo "gpu_check: refuses, reports, packs"
