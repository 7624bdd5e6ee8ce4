#!/bin/sh
# The tests of engine, topology and workloads as WebAssembly in node.
#   units.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
# shellcheck source=tests/browser/built.sh
. "$2/tests/browser/built.sh"
module=$2/build/wasm/test_wasm.wasm
built "$module" "$2/engine" "$2/topology" "$2/workloads" "$2/sim" "$2/tests/engine" \
  "$2/tests/topology" "$2/tests/workloads"
exec node "$2/tests/browser/units.js" "$module" "$2"
