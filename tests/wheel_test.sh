#!/bin/sh
# Tests scripts/wheel.py: a static program is packed into a wheel, which pip installs without network in a
# fresh virtual environment, runs and removes; the same program gives the same bits; a dynamic program and
# other files are refused.
#   wheel_test.sh SOURCE COMPILER      packs a small program that COMPILER builds
#   wheel_test.sh SOURCE --wheel FILE  only installs FILE, a wheel of scripts/release.sh, and runs it
# The exit status is 77 if Python's venv or pip, or a static C library, is missing.
set -eu
source=$1 compiler=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH PIP_INDEX_URL PIP_FIND_LINKS
export PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CONFIG_FILE=/dev/null

fail() {
  echo "wheel_test: $*" >&2
  exit 1
}
skip() {
  echo "wheel_test: skipped: $*"
  exit 77
}
command -v python3 > /dev/null || skip "python3 is not installed"

# install FILE: installs a wheel in the fresh virtual environment $work/venv.
install() {
  python3 -c "import ensurepip, venv" 2> /dev/null || skip "python3-venv is not installed"
  python3 -m venv "$work/venv" > "$work/log" || { cat "$work/log"; fail "no virtual environment"; }
  "$work/venv/bin/pip" install "$1" > "$work/log" 2>&1 || { cat "$work/log"; fail "$1: not installed"; }
}

if [ "$compiler" = --wheel ]; then
  install "$3"
  cd "$work"
  # Without PATH, the program can start no other program.
  PATH='' "$work/venv/bin/longhand" version
  PATH='' "$work/venv/bin/longhand" train --task flip-flop --task.instructions 8 --layers 1 --width 8 \
    --heads softmax:2 --batch 2 --steps 3 --evaluate-samples 2 --quiet --out "$work/run" ||
    fail "the installed program does not train"
  echo "wheel_test: $(basename "$3"): installed and run"
  exit 0
fi

# A program with more than one page of zeros, so that compression makes the wheel smaller.
cat > "$work/program.c" <<'C'
#include <stdio.h>
const char zeros[1 << 16] = {0};
int main(int count, char** words) { printf("%d %s\n", count - 1 + zeros[count], words[1]); return 3; }
C
build() {
  "$compiler" -x c "$@" "$work/program.c"
}
build -static -o "$work/static" || skip "$compiler cannot link a static program"
build -o "$work/dynamic"
wheel() {
  (cd "$work" && "$source/scripts/wheel.py" "$@")
}

# refused WORDS ARGUMENT...: the script must fail with WORDS and write nothing.
refused() {
  words=$1
  shift
  mkdir "$work/refused"
  ! wheel "$@" "$work/refused" 2> "$work/error" || fail "$*: expected an error"
  grep -qF -- "$words" "$work/error" || { cat "$work/error"; fail "$*: expected '$words'"; }
  rmdir "$work/refused" || fail "$*: a file was written"
}
refused "dynamic: expected a static program, got a program that needs a dynamic loader" dynamic pack 1.0
refused "program.c: expected a 64-bit little-endian ELF program" program.c pack 1.0
refused "missing: No such file" missing pack 1.0
refused "NAME: expected lower-case letters and digits, got 'a/b'" static a/b 1.0
refused "VERSION: expected numbers with points between them, got '1.0-x'" static pack 1.0-x
head -c 100 "$work/static" > "$work/cut"
refused "cut: its program headers are outside the file" cut pack 1.0

mkdir "$work/one" "$work/two"
export SOURCE_DATE_EPOCH=1700000000
file=$(wheel static pack 1.2.3 "$work/one")
cmp "$file" "$(wheel static pack 1.2.3 "$work/two")" || fail "the same program gave other bits"
[ "$(basename "$file")" = \
  "pack-1.2.3-py3-none-manylinux_2_17_$(uname -m).musllinux_1_1_$(uname -m).whl" ] ||
  fail "got $file"
[ "$(stat -c %s "$file")" -lt "$(stat -c %s "$work/static")" ] || fail "the wheel is not compressed"

install "$file"
[ "$("$work/venv/bin/pip" show pack | sed -n 's/^Version: //p')" = 1.2.3 ] || fail "pip show: no version"
status=0
said=$(PATH='' "$work/venv/bin/pack" word) || status=$?
[ "$said $status" = "1 word 3" ] || fail "expected '1 word 3', got '$said $status'"
cmp "$work/static" "$work/venv/bin/pack" || fail "the installed program has other bits"
"$work/venv/bin/pip" uninstall -y pack > /dev/null
[ ! -e "$work/venv/bin/pack" ] || fail "pip uninstall left the program behind"

# pip does not compare the files of a wheel with their sizes and checksums in RECORD.
python3 - "$file" <<'PYTHON' || fail "RECORD does not describe the files"
import base64, csv, hashlib, io, sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(archive.read("pack-1.2.3.dist-info/RECORD").decode()))}
assert sorted(rows) == sorted(archive.namelist()), rows
for name, (digest, size) in rows.items():
    if name.endswith("/RECORD"):
        assert digest == size == "", (digest, size)
        continue
    contents = archive.read(name)
    expected = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
    assert digest == "sha256=" + expected and int(size) == len(contents), name
PYTHON
echo "wheel_test: packed, installed, run and removed"
