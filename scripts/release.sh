#!/bin/sh
# Makes the packages of a version: a static program, a wheel of it for pip, Debian packages of the program
# and of the library, an archive of the source, a list of the linked software, and checksums. On x86-64,
# everything is also built for arm64 if the cross compiler is installed (scripts/setup.sh arm64).
#   scripts/release.sh [OUT]             writes to OUT (default: build/packages)
#   scripts/release.sh --compare [OUT]   builds twice in different folders and compares every bit
# The environment variable LONGHAND_MACHINES lists the machines to build for: amd64, arm64 or both. The
# script builds a clone, so the packages contain only committed files. Files in the packages have the date
# of the commit.
set -eu
source=$(cd "$(dirname "$0")/.." && pwd)
compare=no
if [ "${1:-}" = --compare ]; then
  compare=yes
  shift
fi
out=${1:-$source/build/packages}
mkdir -p "$out"
out=$(cd "$out" && pwd)
largest=$((20 << 20))  # limit of the program's size in bytes
command -v python3 > /dev/null || { echo "release: python3, which packs the wheel, is not installed" >&2; exit 1; }

commit=$(git -C "$source" rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git -C "$source" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
this_machine=$(dpkg --print-architecture)
machines=${LONGHAND_MACHINES:-}
if [ -z "$machines" ]; then
  machines=$this_machine
  if [ "$this_machine" = arm64 ]; then
    :
  elif command -v aarch64-linux-gnu-g++ >/dev/null && command -v qemu-aarch64 >/dev/null; then
    machines="$machines arm64"
  else
    echo "release: nothing for arm64: scripts/setup.sh arm64 installs its compiler"
  fi
fi
for machine in $machines; do
  case $machine in
    "$this_machine" | arm64) ;;
    *) echo "release: LONGHAND_MACHINES: expected $this_machine or arm64, got $machine" >&2; exit 1 ;;
  esac
done
arm64_root=$source/build/arm64-root

# debian_package NAME FOLDER DEPENDS SUMMARY: makes the Debian package NAME of FOLDER.
debian_package() {
  mkdir -p "$2/DEBIAN" "$2/usr/share/doc/$1"
  cp "$work/source/LICENSE" "$2/usr/share/doc/$1/copyright"
  cat > "$2/DEBIAN/control" <<END
Package: $1
Version: $version
Architecture: $machine
Maintainer: The longhand maintainers <maintainers@localhost>
Section: science
Priority: optional
Installed-Size: $(du -sk --apparent-size "$2/usr" | cut -f1)
${3:+Depends: $3
}Description: $4
END
  find "$2" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  dpkg-deb --build --root-owner-group "$2" "$to/$1_${version}_$machine.deb" > /dev/null
}

# Prints the list of the software that the programs contain, in the format SPDX.
parts_list() {
  printf '{\n "spdxVersion": "SPDX-2.3",\n "dataLicense": "CC0-1.0",\n "SPDXID": "SPDXRef-DOCUMENT",\n'
  printf ' "name": "longhand-%s",\n "documentNamespace": "urn:longhand:%s",\n' "$version" "$commit"
  printf ' "creationInfo": {"created": "%s", "creators": ["Tool: scripts/release.sh"]},\n' \
    "$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)"
  printf ' "packages": [\n  {"SPDXID": "SPDXRef-longhand", "name": "longhand", "versionInfo": "%s", ' "$version"
  printf '"licenseConcluded": "Apache-2.0", "downloadLocation": "NOASSERTION"}'
  for each in $machines; do parts_of "$each"; done | while read -r package made_of; do
    id=$(echo "$package" | tr -c 'a-zA-Z0-9.\n-' '-')
    printf ',\n  {"SPDXID": "SPDXRef-%s", "name": "%s", "versionInfo": "%s", ' "$id" "$package" "$made_of"
    printf '"licenseConcluded": "NOASSERTION", "downloadLocation": "NOASSERTION"}'
  done
  printf '\n ]\n}\n'
}

# parts_of MACHINE: prints the Debian packages with which MACHINE's program is linked, with their versions.
parts_of() {
  if [ "$1" = "$this_machine" ]; then
    set -- libc6-dev libgcc-12-dev libstdc++-12-dev libboost-program-options1.74-dev libboost1.74-dev
  else
    set -- libc6-dev-arm64-cross libgcc-12-dev-arm64-cross libstdc++-12-dev-arm64-cross
    sed 's/ /:arm64 /' "$arm64_root/packages" | grep -v test
  fi
  for package; do
    made_of=$(dpkg-query -W -f '${Version}' "$package" 2>/dev/null) || continue
    [ -z "$made_of" ] || echo "$package $made_of"
  done
}

# Builds the program and the packages for $machine, in folders with the machine's name.
make_machine() {
  set --
  if [ "$machine" != "$this_machine" ]; then
    "$source/scripts/arm64.sh" boost
    set -- "-DCMAKE_TOOLCHAIN_FILE=$work/source/cmake/arm64.cmake" "-DLONGHAND_ARM64_ROOT=$arm64_root" \
      -DCMAKE_INSTALL_LIBDIR=lib/aarch64-linux-gnu
  fi
  at=$work/$machine
  cmake -S "$work/source" -B "$at/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DLONGHAND_STATIC=ON \
    -DLONGHAND_UNITY=ON -DCMAKE_INSTALL_PREFIX=/usr -DLONGHAND_TESTS=OFF \
    "-DCMAKE_CXX_FLAGS=-ffile-prefix-map=$work=longhand -ffile-prefix-map=$arm64_root=boost" \
    "$@" > "$work/log" || { cat "$work/log"; exit 1; }
  cmake --build "$at/build" > "$work/log" || { tail -n 40 "$work/log"; exit 1; }
  DESTDIR="$at/all" cmake --install "$at/build" --strip > "$work/log"

  mkdir -p "$at/program/usr" "$at/library/usr"
  cp -a "$at/all/usr/bin" "$at/all/usr/share" "$at/program/usr"
  cp -a "$at/all/usr/include" "$at/all/usr/lib" "$at/library/usr"
  if [ -d "$at/program/usr/share/doc/longhand/html" ]; then  # the reference belongs to the library
    mkdir -p "$at/library/usr/share/doc/longhand-dev"
    mv "$at/program/usr/share/doc/longhand/html" "$at/library/usr/share/doc/longhand-dev/html"
  fi
  gzip -9n "$at/program/usr/share/man/man1/"*.1
  debian_package longhand "$at/program" "" "trains, evaluates and inspects transformers, in one program"
  debian_package longhand-dev "$at/library" "g++" "tensors, automatic differentiation and training in C++20"
  cp "$at/all/usr/bin/longhand" "$to/longhand-$version-$machine"
  size=$(stat -c %s "$to/longhand-$version-$machine")
  [ "$size" -lt "$largest" ] || { echo "release: the program has $size bytes, more than $largest" >&2; exit 1; }
  "$work/source/scripts/wheel.py" "$to/longhand-$version-$machine" longhand "$version" "$to" > /dev/null
}

# make_packages TO: builds everything from a clone of the commit and writes it to the folder TO.
make_packages() {
  to=$1
  work=$(mktemp -d)
  git clone -q --no-hardlinks "$source" "$work/source"
  git -C "$work/source" checkout -q "$commit"
  version=$(sed -n 's/^project(longhand VERSION \([0-9.]*\).*/\1/p' "$work/source/CMakeLists.txt")
  for machine in $machines; do make_machine; done
  git -C "$work/source" archive --format=tar --prefix="longhand-$version/" "$commit" |
    gzip -9n > "$to/longhand-$version.tar.gz"
  parts_list > "$to/longhand-$version.spdx.json"
  (cd "$to" && sha256sum longhand* > SHA256SUMS)
  rm -rf "$work"
}

rm -f "$out"/longhand* "$out/SHA256SUMS"
make_packages "$out"
if [ "$compare" = yes ]; then
  again=$(mktemp -d)
  CCACHE_DISABLE=1 make_packages "$again"
  for file in "$out"/longhand* "$out/SHA256SUMS"; do
    cmp "$file" "$again/$(basename "$file")" || { echo "release: not the same twice" >&2; exit 1; }
  done
  rm -rf "$again"
  echo "release: the same bits twice"
fi
cat "$out/SHA256SUMS"
