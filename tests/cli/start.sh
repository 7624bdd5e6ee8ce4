#!/bin/sh
# What a start of the program loads: HDF5 and its twenty libraries only with an HDF5 file.
#   start.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
programs=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "$1" >&2
  exit 1
}

# loads_hdf5 COMMAND...: what the dynamic linker says of it.
loads_hdf5() {
  LD_DEBUG=files LD_DEBUG_OUTPUT="$work/linker" "$@" >/dev/null
  grep -qs libhdf5 "$work"/linker.*
  found=$?
  rm -f "$work"/linker.*
  return $found
}

for program in stepcast stepcast-calibrate stepcast-validate; do
  if loads_hdf5 "$programs/$program" --help; then fail "$program loads HDF5 for its help"; fi
done
set -- run --model llama2-1b --gpu h100 --local-batch 2 --quiet
if loads_hdf5 "$programs/stepcast" "$@"; then fail "a run with the shipped table loads HDF5"; fi
loads_hdf5 "$programs/stepcast" "$@" --out "$work/out" || fail "results.h5 was written by whom?"
loads_hdf5 "$programs/stepcast" "$@" --set 'calibration.tables=["'"$programs"'/published.h5"]' ||
  fail "published.h5 was read by whom?"

# Without the flat form, and with a table made since, the table itself is read; the answer stays.
mkdir "$work/bin"
for file in stepcast stepcast_hdf5.so published.h5; do cp -p "$programs/$file" "$work/bin/"; done
"$programs/stepcast" "$@" --json >"$work/flat.json"
"$work/bin/stepcast" "$@" --json >"$work/table.json"
cmp "$work/flat.json" "$work/table.json"
: >"$work/bin/published.columns"
touch -d '2000-01-01' "$work/bin/published.columns"
"$work/bin/stepcast" "$@" --json >"$work/newer.json"
cmp "$work/flat.json" "$work/newer.json"

# Without the module the message says what is missing.
rm "$work/bin/stepcast_hdf5.so"
if "$work/bin/stepcast" "$@" >/dev/null 2>"$work/error"; then fail "read HDF5 without HDF5"; fi
grep -q "stepcast_hdf5.so: HDF5 cannot be loaded" "$work/error"
