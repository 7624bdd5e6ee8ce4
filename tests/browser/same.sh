#!/bin/sh
# Sixty commands of all verbs by WebAssembly in node and by the native program: the same bytes.
#   same.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
wasm=$2/build/wasm/stepcast.wasm
command -v node >/dev/null || { echo "skipped: no node"; exit 77; }
[ -f "$wasm" ] || { echo "skipped: not built for the browser (./dev page)"; exit 77; }
newer=$(find "$2/engine" "$2/topology" "$2/workloads" "$2/sim" \( -name '*.cpp' -o -name '*.hpp' \) \
  -newer "$wasm" | head -n 1)
[ -z "$newer" ] || { echo "skipped: $newer is newer than $wasm (./dev page)"; exit 77; }
exec node "$2/tests/browser/same.js" "$1/stepcast" "$wasm" "$2"
