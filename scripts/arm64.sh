#!/bin/sh
# Builds longhand for arm64 on a Debian machine of another kind and runs its tests there in the
# emulator qemu-user. The results show that the program is correct on arm64, but not how fast it is.
#   scripts/arm64.sh           builds and tests
#   scripts/arm64.sh boost     only unpacks Boost for arm64 in build/arm64-root
# The script installs the cross compiler and qemu (scripts/setup.sh arm64). It unpacks Debian's Boost
# for arm64 in the build folder and does not change the machine's other packages or package lists.
set -eu
cd "$(dirname "$0")/.."
root=$PWD/build/arm64-root
program=$PWD/build/arm64/apps/longhand

# Downloads Debian's packages for arm64 with an apt that uses separate package lists.
unpack_boost() {
  [ ! -e "$root/usr/include/boost/version.hpp" ] || return 0
  suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  apt=$(mktemp -d)
  mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$apt/empty"
  : > "$apt/state/status"
  echo "deb ${LONGHAND_DEBIAN_MIRROR:-http://deb.debian.org/debian} $suite main" > "$apt/sources.list"
  cat > "$apt/apt.conf" <<CONF
APT::Architecture "arm64";
APT::Architectures "arm64";
APT::Sandbox::User "";
Dir::State "$apt/state";
Dir::State::status "$apt/state/status";
Dir::Cache "$apt/cache";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "$apt/empty";
Dir::Etc::preferencesparts "$apt/empty";
CONF
  APT_CONFIG=$apt/apt.conf apt-get update -qq
  for library in libboost libboost-program-options libboost-test; do
    dependency=$(APT_CONFIG=$apt/apt.conf apt-cache depends "$library-dev" |
      sed -n "s/^ *Depends: \(${library}[0-9.]*-dev\)\$/\1/p" | head -n 1)
    (cd "$apt/cache" && APT_CONFIG=$apt/apt.conf apt-get download -qq "$dependency")
  done
  mkdir -p "$root"
  for package in "$apt"/cache/*.deb; do
    dpkg-deb -x "$package" "$root"
    # shellcheck disable=SC2016  # dpkg-deb expands them
    dpkg-deb -W --showformat='${Package} ${Version}\n' "$package"
  done > "$root/packages"
  rm -rf "$apt"
}

[ "$(dpkg --print-architecture 2>/dev/null)" != arm64 ] || {
  echo "arm64: this machine is one: scripts/test.sh builds and tests here" >&2
  exit 1
}
scripts/setup.sh arm64
unpack_boost
[ "${1:-all}" != boost ] || exit 0

cmake --preset arm64 -DLONGHAND_WERROR=ON -DLONGHAND_UNITY=ON >/dev/null
cmake --build --preset arm64 --target longhand longhand_library_tests

echo "\$ longhand info"
qemu-aarch64 "$program" info

# Compares outputs and gradients of every operation on the CPU with the reference backend, and its
# derivatives with difference quotients. In an emulator, more threads than processors spend a long time
# waiting for each other.
check() { qemu-aarch64 "$program" gradcheck --threads 1 "$@"; }
for math in exact fast bf16 portable; do check --backend cpu --math $math; done
LONGHAND_CPU=portable check --backend cpu
check

# Runs the library's test suites with every instruction set, except the suites that the checks above
# replace and those that take many minutes in the emulator.
begun=$(date +%s)
qemu-aarch64 build/arm64/tests/longhand_library_tests --report_level=short --log_level=error \
  --run_test="${LONGHAND_ARM64_TESTS:-!gradcheck_test:!parity_test:!gemm_test:!attention_long_test}"
echo "arm64: the library's suites passed in $(($(date +%s) - begun)) s"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
settings="--task flip-flop --task.instructions 8 --width 32 --layers 2 --heads softmax:1,fal:1 --batch 4
  --steps 40 --checkpoint-every 20 --quiet"
# train RUN THREADS [EMULATOR] PROGRAM: trains the run RUN.
train() {
  to=$work/$1 threads=$2
  shift 2
  # shellcheck disable=SC2086  # a list of words
  "$@" train $settings --threads "$threads" --out "$to" >/dev/null
}
# same RUN OTHER: succeeds if both runs have equal parameters and moments after the last step.
same() {
  for file in model.safetensors optimizer.safetensors; do
    cmp "$work/$1/checkpoints/step-40/$file" "$work/$2/checkpoints/step-40/$file" || return 1
  done
}
must_be_same() {
  same "$1" "$2" || { echo "arm64: expected the same bits from $3" >&2; exit 1; }
  echo "arm64: the same bits from $3"
}

train one 1 qemu-aarch64 "$program"
train two 2 qemu-aarch64 "$program"
must_be_same one two "one thread and two"
cp -R "$work/one" "$work/resumed"
qemu-aarch64 "$program" train --resume "$work/resumed" --from-step 20 --quiet >/dev/null
must_be_same one resumed "a training of 40 steps and one resumed from step 20"
qemu-aarch64 "$program" check "$work/resumed"

# --math portable computes the same bits on every machine: the committed hashes hold here too. A transcript
# that one program wrote is verified by the other.
tests/portable_training_test.sh --out "$work/arm64" qemu-aarch64 "$program"
other=${LONGHAND_OTHER:-$PWD/build/release/apps/longhand}
if [ -x "$other" ]; then
  tests/portable_training_test.sh --out "$work/other" "$other"
  cd "$work"
  for run in arm64/*-*; do
    echo "\$ longhand verify --all $run    # on $(uname -m)"
    "$other" verify --all "$run"
  done
  for run in other/*-*; do
    echo "\$ longhand verify --all $run    # on arm64"
    qemu-aarch64 "$program" verify --all "$run"
  done
else
  echo "arm64: $other is not built: no transcript was verified across processors"
fi
echo "arm64: all passed"
