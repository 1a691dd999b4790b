#!/bin/bash
# Every test. Those with a broker wait for most of their time: they run beside the others, and their output comes last.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

targets=()
while IFS= read -r target; do
    if [ "$target" != kafka ]; then targets+=(--test "$target"); fi
done < <(scripts/test-targets.sh)

# Everything is built first, so that nobody waits for the compiler.
cargo test --release --workspace --no-run

output=$(mktemp)
cargo test --release --workspace --test kafka >"$output" 2>&1 &
with_broker=$!
trap 'kill "$with_broker" 2>/dev/null || true; rm -f "$output"' EXIT

failed=()
cargo test --release --workspace --lib --bins "${targets[@]}" || failed+=("without a broker")
cargo test --release --workspace --doc || failed+=("of the documentation")
wait "$with_broker" || failed+=("with a broker")
cat "$output"
for which in "${failed[@]}"; do
    echo "test: a test $which failed" >&2
done
exit "${#failed[@]}"
