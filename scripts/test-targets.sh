#!/bin/bash
# The names of all test targets of the workspace, one a line.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo metadata --no-deps --format-version 1 |
    grep -o '"kind":\["test"\],"crate_types":\["bin"\],"name":"[^"]*"' | sed 's/.*"name":"//; s/"//' | sort -u
