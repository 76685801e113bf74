#!/bin/sh
# Installs the Debian packages that are needed to build and test longhand, if they are missing.
#   scripts/setup.sh [lint|fuzz|reference|arm64|root|wasm]
# An argument adds packages: lint adds clang-tidy for scripts/tidy.sh, fuzz adds clang, reference adds
# doxygen, arm64 adds the cross compiler and qemu for scripts/arm64.sh, and root adds debootstrap for
# scripts/fresh_root.sh. wasm adds node, and installs the Python package ziglang in build/zig, which
# contains clang for WebAssembly and the sources of its C++ library.
set -eu
cd "$(dirname "$0")/.."

install_zig() {
  [ ! -e "$(echo build/zig/lib/python3*/site-packages/ziglang/zig)" ] || return 0
  echo "setup: installing ziglang in build/zig"
  python3 -m venv build/zig
  build/zig/bin/pip install --quiet ziglang==0.17.1
}

packages="g++ cmake ninja-build libboost-program-options-dev libboost-test-dev
  clang-format locales-all libopenmpi-dev openmpi-bin"
case ${1:-} in
  lint) packages="$packages clang-tidy" ;;
  fuzz) packages="$packages clang" ;;
  reference) packages="$packages doxygen" ;;
  arm64) packages="$packages g++-aarch64-linux-gnu qemu-user" ;;
  root) packages="$packages debootstrap" ;;
  wasm) packages="cmake ninja-build python3-venv nodejs" ;;
esac

missing=""
for package in $packages; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing="$missing $package"
done
if [ -z "$missing" ]; then
  echo "setup: no package to install"
  [ "${1:-}" != wasm ] || install_zig
  exit 0
fi

command -v apt-get >/dev/null || {
  echo "setup: this is not a Debian system; install what corresponds to:$missing" >&2
  exit 1
}
root=""
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || {
    echo "setup: run as root, or install sudo; missing:$missing" >&2
    exit 1
  }
  root="sudo"
fi
echo "setup: installing$missing"
export DEBIAN_FRONTEND=noninteractive
$root apt-get update -qq
# shellcheck disable=SC2086  # a list of words
$root apt-get install -y -qq --no-install-recommends $missing >/dev/null
[ "${1:-}" != wasm ] || install_zig
