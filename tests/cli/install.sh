#!/bin/sh
# cmake --install: the installed programs work from anywhere, on what was installed with them alone.
#   install.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
build=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset STEPCAST_DATA

cmake --install "$build" --prefix "$work/first" >"$work/log"
mv "$work/first" "$work/prefix"  # nothing may remember where it was installed
prefix=$work/prefix
cd "$work"

# The same answer as the programs of the build folder.
"$build/stepcast" run "$source/scenarios/model_sizes.toml" --json --quiet >built.json
"$prefix/bin/stepcast" run "$prefix/share/stepcast/scenarios/model_sizes.toml" --json --quiet \
  >installed.json
cmp built.json installed.json

# Not the source's catalogue: an entry that was added to the installed one alone is known.
cp "$prefix/share/stepcast/scenarios/models/llama2-7b.toml" \
  "$prefix/share/stepcast/scenarios/models/added.toml"
"$prefix/bin/stepcast" show models | grep -q '^added '
# Nor the build's table: without the installed ones there is none. The flat one does without HDF5,
# the other one needs the module of lib.
mv "$prefix/share/stepcast/published.columns" published.columns
"$prefix/bin/stepcast" run "$prefix/share/stepcast/scenarios/model_sizes.toml" --json --quiet \
  >from_hdf5.json
cmp built.json from_hdf5.json
mv "$prefix/share/stepcast/published.h5" published.h5
status=0
"$prefix/bin/stepcast" run --model added --gpu h100 --nodes 1 --local-batch 1 2>missing ||
  status=$?
[ "$status" -eq 3 ] || { echo "without its table: exit $status"; cat missing; exit 1; }
grep -q "published.h5" missing
mv published.h5 published.columns "$prefix/share/stepcast/"

# The sister programs find each other and the same data.
"$prefix/bin/stepcast" calibrate show "$prefix/share/stepcast/published.h5" | grep -q gemm
"$prefix/bin/stepcast" validate published --quiet >published
grep -q "rows" published
