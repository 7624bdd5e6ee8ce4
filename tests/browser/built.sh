# Sourced by the tests of what ./dev check --only page builds.
#   built MODULE.wasm FOLDER...   skips where node or the module is not there, or a source of the
#                                 folders is newer than it
built() {
  wasm=$1
  shift
  command -v node >/dev/null || { echo "skipped: no node"; exit 77; }
  [ -f "$wasm" ] || { echo "skipped: not built for WebAssembly (./dev check --only page)"; exit 77; }
  newer=$(find "$@" \( -name '*.cpp' -o -name '*.hpp' \) -newer "$wasm" | head -n 1)
  [ -z "$newer" ] || { echo "skipped: $newer is newer than $wasm (./dev check --only page)"; exit 77; }
}
