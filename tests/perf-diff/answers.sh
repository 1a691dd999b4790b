#!/bin/sh
# What perf diff says of FOLDER/base.data and head.data in each case of cases.tsv: FOLDER/CASE.csv, one row a function.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cd "$1"
grep -v '^#' "$here/cases.tsv" | while IFS="$(printf '\t')" read -r name options _; do
    # Options hold no spaces of their own.
    # shellcheck disable=SC2086
    perf diff -q -t , -c delta -p $options base.data head.data >"$name.csv" 2>answers.log
done
