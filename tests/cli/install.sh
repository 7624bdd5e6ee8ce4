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

# What users build is stripped, and what the programs share is there once; the pages come with them.
if grep -q '^CMAKE_BUILD_TYPE:.*=Release' "$build/CMakeCache.txt" &&
  grep -q '^STEPCAST_SHARED:.*=ON' "$build/CMakeCache.txt"; then
  for file in "$prefix"/bin/* "$prefix"/lib*/stepcast/*.so; do
    ! readelf -SW "$file" | grep -q ' \.symtab ' ||
      { echo "$file is installed with its symbols"; exit 1; }
  done
  [ "$(wc -c <"$prefix/bin/stepcast")" -lt 100000 ] ||
    { echo "bin/stepcast holds what libstepcast.so has"; exit 1; }
  kib=$(du -sk "$prefix" | cut -f 1)
  [ "$kib" -lt 60000 ] || { echo "the installation has $kib KiB"; exit 1; }
fi
for page in README.md CHANGES.md docs/README.md docs/search.md docs/report/design_light.png; do
  cmp "$source/$page" "$prefix/share/doc/stepcast/$page"
done

# The same answer as the programs of the build folder.
"$build/stepcast" run "$source/scenarios/model_sizes.toml" --json --quiet >built.json
"$prefix/bin/stepcast" run "$prefix/share/stepcast/scenarios/model_sizes.toml" --json --quiet \
  >installed.json
cmp built.json installed.json

# Not the source's catalogue: an entry that was added to the installed one alone is known.
sed 's/^name = .*/name = "added"/' "$prefix/share/stepcast/scenarios/models/llama2-7b.toml" \
  >"$prefix/share/stepcast/scenarios/models/added.toml"
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

# The Python package: the program beside it, and the installed catalogue within the process as well.
python=/usr/bin/python3
if [ -x "$python" ]; then
  for in_process in 0 1; do
    PYTHONPATH=$prefix/lib/python3/dist-packages PYTHONSAFEPATH=1 PREFIX=$prefix \
      STEPCAST_IN_PROCESS=$in_process "$python" - <<'END'
import os
import stepcast
assert stepcast.program() == os.environ["PREFIX"] + "/bin/stepcast", stepcast.program()
assert stepcast.run(model="added", gpu="h100", nodes=1, data="zero2", local_batch=1)["gpus"] == 8
END
  done
else
  echo "Python package: not tried, no $python"
fi

# Manual pages: formatted without a complaint, where groff is at hand.
man=$prefix/share/man/man1
for program in stepcast stepcast-calibrate stepcast-validate stepcast-trainer; do
  grep -q "^.SH EXIT STATUS" "$man/$program.1" || { echo "no $program.1"; exit 1; }
  command -v groff >/dev/null 2>&1 || { echo "manual pages: not formatted, no groff"; continue; }
  groff -man -Tascii -z -ww "$man/$program.1" 2>complaints
  [ ! -s complaints ] || { echo "$program.1:"; cat complaints; exit 1; }
  groff -man -Tascii -P-cbou "$man/$program.1" | grep -q '^EXIT STATUS'
done

# Completion, as an interactive bash finds and calls it.
command -v bash >/dev/null 2>&1 || { echo "completion: not tried, no bash"; exit 0; }
completions=$prefix/share/bash-completion/completions
for program in stepcast stepcast-calibrate stepcast-validate stepcast-trainer; do
  bash -n "$completions/$program"
done
# completes WORD... : what bash is offered for the last one.
completes() {
  PATH=$prefix/bin:$PATH bash -c '. "$0/$1"
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    "$(complete -p "$1" | sed "s/.* -F \([^ ]*\) .*/\1/")" "$1"
    printf "%s\n" "${COMPREPLY[@]}"' "$completions" "$@" >offered
}
offers() {
  grep -qx -e "$1" offered || { echo "completion: no '$1' but:"; cat offered; exit 1; }
}
completes stepcast ""; offers run; offers calibrate
completes stepcast run --recomp; offers --recompute
completes stepcast run --gpu h; offers h100
completes stepcast run --gpu = h1; offers h100
completes stepcast run --model ""; offers added
completes stepcast run --set plan.d; offers plan.data=
completes stepcast run --set plan.data = z; offers zero3
completes stepcast calibrate import --fabric ""; offers infiniband
completes stepcast-calibrate import-node --n; offers --name; offers --node-bandwidth
completes stepcast-validate kernels --leave-out ""; offers shape
completes stepcast-trainer --ranks ""; offers threads
completes stepcast run x.to; [ "$(cat offered)" = "" ] # a file: bash's own
