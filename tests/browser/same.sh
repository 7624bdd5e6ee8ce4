#!/bin/sh
# Sixty commands of all verbs by WebAssembly in node and by the native program: the same bytes.
#   same.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
# shellcheck source=tests/browser/built.sh
. "$2/tests/browser/built.sh"
module=$2/build/wasm/stepcast.wasm
built "$module" "$2/engine" "$2/topology" "$2/workloads" "$2/sim"
exec node "$2/tests/browser/same.js" "$1/stepcast" "$module" "$2"
