#!/bin/sh
# stepcast-sweep under mpirun: points pulled one after the other, a lost process and an end by
# SIGTERM gone on with. 77: skipped, with the reason.
#   sweep_mpi.sh FOLDER_OF_PROGRAMS SOURCE
set -u
# Open MPI leaves memory behind at its end, which is not ours to judge.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
programs=$1
stepcast=$programs/stepcast
# shellcheck disable=SC2034 # of expect.sh
program=$programs/stepcast-sweep
[ -x "$program" ] || { echo "skipped: built without MPI"; exit 77; }
command -v mpirun >/dev/null 2>&1 || { echo "skipped: no mpirun on PATH"; exit 77; }
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/sweeps.sh
. "$2/tests/cli/shared/sweeps.sh"
# shellcheck source=tests/cli/shared/signals.sh
. "$2/tests/cli/shared/signals.sh"
cd "$work" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ranks() {
  timeout "$(patience 120)" mpirun --oversubscribe --bind-to none -np 3 "$program" "$@"
}

# Of very unequal cost: the last ones take many times as long.
scenario unequal.toml '"cluster.nodes" = [1, 2, 3, 64]' \
  '"model.sequence" = [512, 1024, 1536, 2048, 2560, 3072, 3584, 4096]' '"plan.tensor" = [1, 3]'
points=64
"$stepcast" sweep unequal.toml --no-fold --out whole >/dev/null || fail "no sweep"
ranks unequal.toml --no-fold --out pulled >pulled.txt 2>&1 || fail "mpirun: $(cat pulled.txt)"
grep -q "^$points points: 32 answered, 32 refused, 0 failed, 0 missing" pulled.txt ||
  fail "$(cat pulled.txt)"
no_row_twice $points pulled
[ "$(grep -c "rank-" pulled.txt)" = 3 ] || fail "not three processes: $(cat pulled.txt)"
"$stepcast" sweep merge pulled >/dev/null || fail "no merge"
same whole/results.json pulled/results.json
same whole/results.h5 pulled/results.h5

# A process is lost when it has kept some points, mpirun ends the others. mpirun itself is asked to
# end while a process stands still that has kept some. Then it goes on.
begin() {
  exec mpirun --oversubscribe --bind-to none -np 3 "$program" unequal.toml --no-fold --out "$1"
}
some=$(head -n 6 whole/results.jsonl | wc -c)
(signal_at "$some" 9 killed && begin killed) >killed.txt 2>&1 && fail "a lost process went unnoticed"
(signal_at "$some" 19 ended && begin ended) >ended.txt 2>&1 &
pid=$!
one_stands() {
  for rank in $(family_of $pid); do
    stopped "$rank" && return
  done
  return 1
}
wait_until one_stands || fail "no process has kept some points: $(cat ended.txt)"
kill -TERM $pid
wait $pid && fail "ended by SIGTERM, but says that all is well"
for folder in killed ended; do
  expect 0 "points" unequal.toml --no-fold --out $folder  # without mpirun: one process
  "$stepcast" sweep --out $folder --status | grep -q " 0 missing" || fail "points are missing"
  no_row_twice $points $folder
  "$stepcast" sweep merge $folder >/dev/null || fail "no merge"
  same whole/results.json $folder/results.json
done

expect 2 "out DIR is missing" unequal.toml
expect 2 "which scenario" --out killed
expect 0 "mpirun -np 4" --help
exit $((failures > 0))
