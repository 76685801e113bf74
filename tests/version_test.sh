#!/bin/sh
# The program reports the right commit without git. The commit is read from the files of a
# repository, in each form that these files can have, or from an archive. It is "unknown" if there
# is no commit in them.
set -eu
script=$1/cmake/version.cmake
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
one=1111111111111111111111111111111111111111
two=2222222222222222222222222222222222222222

# expect COMMIT FOLDER WHAT: checks the commit that is read from FOLDER if git is not found.
expect() {
  cmake -DSOURCE="$2" -DOUTPUT="$work/out.cpp" -DVERSION=1 -DCOMPILER=c -DBUILD=b \
    -DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF -DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF -P "$script"
  grep -q "commit = \"$1\"" "$work/out.cpp" || {
    echo "$3: expected $1, got: $(grep commit "$work/out.cpp")" >&2
    exit 1
  }
}

mkdir -p "$work/tree/.git/refs/heads/some" "$work/tree/cmake"
echo "$one" > "$work/tree/.git/HEAD"
expect $one "$work/tree" "a detached head"
echo "ref: refs/heads/some/branch" > "$work/tree/.git/HEAD"
expect unknown "$work/tree" "a branch without a commit"
printf '# pack-refs with: peeled\n%s refs/heads/other\n%s refs/heads/some/branch\n' $one $two \
  > "$work/tree/.git/packed-refs"
expect $two "$work/tree" "a packed branch"
echo "$one" > "$work/tree/.git/refs/heads/some/branch"
expect $one "$work/tree" "a branch"

mkdir -p "$work/linked" "$work/tree/.git/worktrees/linked"
echo "gitdir: $work/tree/.git/worktrees/linked" > "$work/linked/.git"
echo "ref: refs/heads/other" > "$work/tree/.git/worktrees/linked/HEAD"
echo "../.." > "$work/tree/.git/worktrees/linked/commondir"
expect $one "$work/linked" "a linked worktree"

mkdir -p "$work/archive/cmake"
echo "$two" > "$work/archive/cmake/commit.txt"
expect $two "$work/archive" "an archive"
cp "$1/cmake/commit.txt" "$work/archive/cmake/commit.txt"
[ -e "$1/.git" ] && expect unknown "$work/archive" "a copy without its repository"
echo "version: every form read"
