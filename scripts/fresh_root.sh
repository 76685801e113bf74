#!/bin/sh
# Installs the Debian packages in fresh root folders that debootstrap creates, and uses them there: the
# program in a root with Debian's minimal packages, the library in a root with a compiler. The script
# needs root permissions and, the first time, the network. Programs in the fresh roots have no network.
#   scripts/fresh_root.sh [PACKAGES]
# PACKAGES is the folder that scripts/release.sh wrote (default: build/packages). The environment
# variable LONGHAND_REPRO names the recipe that the program runs (default: fal/table1 --scale smoke).
set -eu
cd "$(dirname "$0")/.."
packages=${1:-build/packages}
repro=${LONGHAND_REPRO:-fal/table1 --scale smoke}
mirror=${LONGHAND_DEBIAN_MIRROR:-http://deb.debian.org/debian}
roots=$PWD/build/fresh-root
machine=$(dpkg --print-architecture)

[ "$(id -u)" = 0 ] || {
  echo "fresh_root: skipped: debootstrap, mount and chroot need root" >&2
  exit 77
}
# one_file PATTERN: prints the only package that matches the expanded pattern.
one_file() {
  if [ $# != 1 ] || [ ! -f "$1" ]; then
    echo "fresh_root: $packages: expected one package for $machine; scripts/release.sh makes them" >&2
    exit 1
  fi
  echo "$1"
}
program=$(one_file "$packages"/longhand_*_"$machine".deb)
library=$(one_file "$packages"/longhand-dev_*_"$machine".deb)
scripts/setup.sh root

# fresh NAME PACKAGES: creates a new root with PACKAGES in addition to Debian's minimum. An archive of
# the unchanged root is stored for the next call.
fresh() {
  rm -rf "${roots:?}/$1"
  mkdir -p "$roots/$1" "$roots/cache"
  if [ -e "$roots/$1.tar" ]; then
    tar -C "$roots/$1" -xf "$roots/$1.tar"
    return
  fi
  debootstrap --variant=minbase --cache-dir="$roots/cache" ${2:+--include="$2"} bookworm "$roots/$1" \
    "$mirror" > "$roots/$1.log" || { tail -n 20 "$roots/$1.log"; exit 1; }
  tar -C "$roots/$1" -cf "$roots/$1.part" .
  mv "$roots/$1.part" "$roots/$1.tar"
}
# inside NAME: runs the commands from standard input in a shell in the root NAME, with a separate /proc
# and without network.
inside() {
  cat > "$roots/$1/root/commands"
  # shellcheck disable=SC2016  # expanded by the inner shell
  unshare --mount --net --pid --fork sh -eu -c '
    mount -t proc proc "$1/proc"
    exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "REPRO=$2" sh -eu /root/commands
  ' sh "$roots/$1" "$repro"
}

echo "== the program, in a root with Debian's minimum"
fresh program ""
cp "$program" "$roots/program/root/longhand.deb"
inside program <<'END'
for tool in c++ python3; do
  ! command -v "$tool" > /dev/null || { echo "this root has $tool"; exit 1; }
done
cd /root
dpkg -i longhand.deb
longhand version
longhand info
longhand repro $REPRO --out /root/run
test -s /usr/share/man/man1/longhand.1.gz
dpkg --purge longhand
left=$(find /usr /etc /var/lib -name "*longhand*")
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
END

echo "== the library, in a root with a compiler"
fresh library g++,cmake,make,pkg-config
cp "$library" "$roots/library/root/longhand-dev.deb"
cp -R examples "$roots/library/root/examples"
inside library <<'END'
cd /root
dpkg -i longhand-dev.deb
cmake -S examples -B by_cmake -DCMAKE_BUILD_TYPE=Release > log || { cat log; exit 1; }
cmake --build by_cmake --target two_layer flip_flop > log || { cat log; exit 1; }
echo "-- by CMake"
by_cmake/two_layer
by_cmake/flip_flop
echo "-- by pkg-config"
g++ -std=c++20 -O2 examples/two_layer.cpp -o by_pkg_config $(pkg-config --cflags --libs longhand)
./by_pkg_config
END
rm -rf "$roots/program" "$roots/library"
echo "fresh_root: both packages work in a fresh root"
