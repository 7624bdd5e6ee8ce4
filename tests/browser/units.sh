#!/bin/sh
# The tests of engine, topology and workloads as WebAssembly in node.
#   units.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
wasm=$2/build/wasm/test_wasm.wasm
command -v node >/dev/null || { echo "skipped: no node"; exit 77; }
[ -f "$wasm" ] || { echo "skipped: not built for WebAssembly (./dev check --only page)"; exit 77; }
exec node "$2/tests/browser/units.js" "$wasm" "$2"
