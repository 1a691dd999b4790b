#!/bin/bash
# The tests that need no broker, browser, Python or long simulation: under a minute once they are built.
#
#   scripts/test-fast.sh              all of them
#   scripts/test-fast.sh FILTER...    those whose names hold FILTER
#
# Each target that is left out is named here with what it needs, so that a new target is included unless it is added
# here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

left_out=(
    kafka          # a real broker
    outside        # a real broker, a real Alertmanager, Python with readers
    page           # a browser
    written        # fleets through the dataflow
    commands       # whole runs of the program, perf
    null           # simulated fleets
    oracle         # fleets through the dataflow and through the oracle
    oracle_self    # fleets through the oracle
    order_schedules # thousands of runs of the dataflow
    memory         # floods up to the default limits
)

targets=()
while IFS= read -r target; do
    for name in "${left_out[@]}"; do
        if [ "$target" = "$name" ]; then continue 2; fi
    done
    targets+=(--test "$target")
done < <(cargo metadata --no-deps --format-version 1 |
    grep -o '"kind":\["test"\],"crate_types":\["bin"\],"name":"[^"]*"' | sed 's/.*"name":"//; s/"//' | sort -u)

# Broken records are drawn in thousands here, in a hundred thousands by `make test`.
export FLEETDIFF_FUZZ_RUNS=${FLEETDIFF_FUZZ_RUNS:-2000}
exec cargo test --release --workspace --lib --bins "${targets[@]}" -- "$@"
