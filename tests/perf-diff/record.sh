#!/bin/sh
# Records shop.c in its two variants with perf, and writes both recordings as text.
#
#   record.sh FOLDER    makes FOLDER/base.data, head.data, base.perf_script, head.perf_script, and by answers.sh what perf diff says
#
# Exits with 3, and says why, where perf or a compiler is missing or may not record.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cannot() {
    echo "record.sh: $1" >&2
    exit 3
}
command -v perf >/dev/null || cannot "perf is not installed (linux-perf)"
command -v cc >/dev/null || cannot "no C compiler"

cd "$folder"
for variant in base:300 head:400; do
    side=${variant%:*}
    mkdir -p "$side"
    # The program is called shop on both sides, for perf compares programs by their names.
    cc -g -O1 -fno-inline -fno-omit-frame-pointer -DROUNDS="${variant#*:}" -o "$side/shop" "$here/shop.c"
    perf record -q -e cpu-clock -F 999 -g --sample-cpu -o "$side.data" "$side/shop" 600000 2>"$side.log" ||
        cannot "perf may not record: $(head -n 1 "$side.log")"
    perf script --ns -F comm,pid,tid,cpu,time,period,event,ip,sym,dso,srcline -i "$side.data" 2>"$side.log" >"$side.perf_script"
    [ -s "$side.perf_script" ] || cannot "perf recorded nothing"
done
"$here/answers.sh" "$folder"
