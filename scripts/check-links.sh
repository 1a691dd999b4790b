#!/bin/bash
# Every relative link of every Markdown file and notebook leads to a file, and so does every path written as `code` that begins with a
# folder of the repository. Links resolve against the file that holds them, paths also against the repository.
# Fenced blocks are skipped; so are paths with placeholders (<, *, {, blanks). Every page of docs is in the book's contents.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folders='(schemas|pipeline|connectors|diff|report|jobs|benches|docs|examples|fleets|tests|scripts|deploy|\.ci)/'
checked=0
broken=0

# Prints LINE:KIND:TARGET for each link and path of a file.
targets() {
    awk -v folders="^$folders" '
        /^ *```/ { fenced = !fenced; next }
        fenced { next }
        {
            rest = $0
            while (match(rest, /`[^`]+`/)) {
                path = substr(rest, RSTART + 1, RLENGTH - 2)
                rest = substr(rest, RSTART + RLENGTH)
                if (path ~ folders && path !~ /[<>*{} ]/) print NR ":path:" path
            }
            rest = $0
            while (match(rest, /\]\([^)]+\)/)) {
                link = substr(rest, RSTART + 2, RLENGTH - 3)
                rest = substr(rest, RSTART + RLENGTH)
                if (link !~ /^([a-z]+:|#)/) print NR ":link:" link
            }
        }' "$1"
}

while IFS= read -r -d '' file; do
    folder=$(dirname "$file")
    while IFS=: read -r line kind target; do
        path=${target%%#*}
        checked=$((checked + 1))
        if [ -e "$folder/$path" ] || { [ "$kind" = path ] && [ -e "$path" ]; }; then continue; fi
        echo "${file#./}:$line: there is no $target" >&2
        broken=$((broken + 1))
    done < <(targets "$file")
done < <(find . \( -name target -o -name .git -o -name output -o -name venv \) -prune -o \( -name '*.md' -o -name '*.ipynb' \) -print0)

for page in docs/*.md; do
    name=${page#docs/}
    if [ "$name" != SUMMARY.md ] && ! grep -q "](${name//./\\.})" docs/SUMMARY.md; then
        echo "docs/SUMMARY.md: $name is not in the contents of the book" >&2
        broken=$((broken + 1))
    fi
done

if [ "$checked" -eq 0 ]; then
    echo "check-links: found no link at all, which cannot be" >&2
    exit 1
fi
if [ "$broken" -gt 0 ]; then exit 1; fi
echo "check-links: $checked links and paths lead somewhere"
