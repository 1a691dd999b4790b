#!/bin/bash
# Redraws the pictures of the documentation: the output of `fleetdiff diff`, `fleetdiff demo` and `fleetdiff report`, as PNG under
# docs/images.
#
#   scripts/pictures.sh [FLEETDIFF]      the program to draw with; target/release/fleetdiff by default
#
# Needs chromium and python3. The pictures show the output of the program: run this when its words change.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

program=$(realpath "${1:-target/release/fleetdiff}")
if [ ! -x "$program" ]; then
    echo "pictures: there is no $program; build it first: cargo build --release" >&2
    exit 1
fi
browser=
for name in chromium chromium-browser google-chrome google-chrome-stable; do
    if command -v "$name" >/dev/null; then browser=$name && break; fi
done
if [ -z "$browser" ]; then
    echo "pictures: chromium is missing (apt-get install chromium)" >&2
    exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p docs/images

# shoot PAGE SIZE PICTURE [OPTION...]: a page as PNG, SIZE being WIDTH,HEIGHT, with more options of the browser.
shoot() {
    "$browser" --headless=new --no-sandbox --disable-gpu --hide-scrollbars --force-color-profile=srgb \
        --user-data-dir="$work/profile" --window-size="$2" --screenshot="$3" "${@:4}" "file://$1" 2>"$work/browser.log" || {
        cat "$work/browser.log" >&2
        exit 1
    }
}

# The differential flame graph: pods of redis that serve sessions, four of builds A and A2 against two of build B. The files of
# a pod are one run, so they are put together first.
together() { zcat fleets/rd-listpack/profiles/"$1"/*.folded.gz >"$work/$2.folded"; }
together rd-00 baseline-pod-1
together rd-01 baseline-pod-2
together rd-04 baseline-pod-3
together rd-05 baseline-pod-4
together rd-08 canary-pod-1
together rd-09 canary-pod-2
"$program" diff --base "$work"/baseline-*.folded --head "$work"/canary-*.folded --format html --output "$work/diff.html"
shoot "$work/diff.html" 1280,800 docs/images/flame-graph.png

# The grid of the demo, as a terminal shows it. Long lines are wrapped between words.
"$program" demo >"$work/demo.txt" 2>/dev/null
python3 - "$work/demo.txt" "$work/demo.html" <<'PYTHON'
import html
import sys
import textwrap

lines = open(sys.argv[1]).read().splitlines()
wrapped = [part for line in lines for part in (textwrap.wrap(line, 100, break_on_hyphens=False) if len(line) > 100 else [line])]
text = "\n".join(["$ make demo", *(part.rstrip() for part in wrapped)])
open(sys.argv[2], "w").write(
    "<!doctype html><meta charset=utf-8><style>body{margin:0;background:#1b1f24}"
    "pre{margin:0;padding:20px 24px;font:15px/1.45 'DejaVu Sans Mono',monospace;color:#dfe5ec}</style>"
    f"<pre>{html.escape(text)}</pre>"
)
open(sys.argv[2] + ".height", "w").write(str(int(40 + 21.75 * (text.count("\n") + 1) + 0.999)))
PYTHON
shoot "$work/demo.html" "980,$(cat "$work/demo.html.height")" docs/images/demo.png

# The top of the report of that demo.
"$program" demo --output "$work/out" --report >/dev/null 2>&1
shoot "$work/out/report.html" 940,1430 docs/images/report.png --force-device-scale-factor=0.8

for picture in docs/images/*.png; do
    size=$(stat -c %s "$picture")
    echo "$picture: $size bytes"
    if [ "$size" -gt 200000 ]; then
        echo "pictures: $picture is larger than 200 kB" >&2
        exit 1
    fi
done
