#!/bin/bash
# Builds target/dist/fleetdiff-<version>-<target>.tar.gz: the stripped program with its licences, completions and man pages.
# The same sources, compiler and commit give the same bytes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo build --locked --profile dist --bin fleetdiff
program=${CARGO_TARGET_DIR:-target}/dist/fleetdiff
version=$("$program" --version | cut -d ' ' -f 2)
target=$(rustc -vV | sed -n 's/^host: //p')
name=fleetdiff-$version-$target

dist=${CARGO_TARGET_DIR:-target}/dist
folder=$dist/$name
rm -rf "$folder"
mkdir -p "$folder/completions"

strip -o "$folder/fleetdiff" "$program"
cp README.md LICENSE-* "$folder"
if [ -e CHANGELOG.md ]; then cp CHANGELOG.md "$folder"; fi
"$program" completions bash >"$folder/completions/fleetdiff.bash"
"$program" completions zsh >"$folder/completions/_fleetdiff"
"$program" completions fish >"$folder/completions/fleetdiff.fish"
"$program" man --output "$folder/man"

# File times are those of the commit, so that they do not depend on when this runs.
time=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
tar --create --directory "$dist" --sort=name --mtime="@$time" --owner=0 --group=0 --numeric-owner "$name" |
    gzip --no-name >"$dist/$name.tar.gz"
rm -r "$folder"
echo "dist: $dist/$name.tar.gz"
