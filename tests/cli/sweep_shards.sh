#!/bin/sh
# A sweep in parts: whatever ends them and whenever, put together they are one run, bit by bit.
#   sweep_shards.sh FOLDER_OF_PROGRAMS SOURCE
set -u
programs=$1
stepcast=$programs/stepcast
# shellcheck disable=SC2034 # of expect.sh
program=$stepcast
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/sweeps.sh
. "$2/tests/cli/shared/sweeps.sh"
# shellcheck source=tests/cli/shared/signals.sh
. "$2/tests/cli/shared/signals.sh"
cd "$work" || exit 1

# Beside it lies what it names: a folder is merged wherever it is.
mkdir study
cp "$2/scenarios/models/llama2-1b.toml" study/own.toml
scenario study/many.toml '"model.name" = ["own.toml", "lama"]' '"plan.tensor" = [1, 2, 3]' \
  '"cluster.nodes" = [1, 2, 3, 4, 6, 8]' '"model.sequence" = [1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192]'
points=288
kills=4  # STEPCAST_CHECK=whole: twenty
[ "${STEPCAST_CHECK:-}" = whole ] && kills=20
"$stepcast" sweep study/many.toml --out whole --csv whole.csv --json >whole.json || fail "no sweep"
[ "$(wc -l <whole/results.jsonl)" = $points ] || fail "not $points points"
grep -q '"refused":' whole.json || fail "no point is refused: they are to be merged as well"

# Killed at random bytes, gone on with each time; in the end nothing is missing, nothing twice.
seed=${SEED:-1}
echo "SEED=$seed"
"$python" -c "
import random
random.seed($seed)
for i in range($kills): print(1 + i % 2, random.randint(1, $(wc -c <whole/results.jsonl) // 6))" >kills
while read -r shard byte; do
  (signal_at "$byte" 9 "parts/results.$shard-of-3.jsonl" &&
   exec "$stepcast" sweep study/many.toml --out parts --shard "$shard/3" --threads 1 --resume) \
    >/dev/null 2>&1
  [ $? -eq 137 ] && hits=$((${hits:-0} + 1))
done <kills
[ "${hits:-0}" -ge 2 ] || fail "${hits:-0} of $kills kills hit"
expect 3 "parts: [0-9]* of $points points are missing, .*--resume" sweep merge parts
expect 0 "$points points: [0-9]* answered, .* missing" sweep --out parts --status
head -c 200 whole/results.jsonl >>parts/results.1-of-3.jsonl  # a torn line, as of a lost machine
expect 0 "96 of 288 points" sweep study/many.toml --out parts --shard 1/3 --resume
expect 0 "96 of 288 points" sweep study/many.toml --out parts --shard 2/3 --resume
expect 3 "missing" sweep merge parts
expect 0 "refused" sweep merge parts --partial
grep -q '"interrupted": true' parts/results.json || fail "two thirds are not all"
expect 0 "together" sweep study/many.toml --out parts --shard 3/3 --resume
no_row_twice $points parts
expect 0 "$points points: [0-9]* answered, [0-9]* refused, 0 failed, 0 missing" sweep --out parts --status
expect 0 "\"missing\": 0" sweep study/many.toml --out parts --status --json
mkdir elsewhere
(cd elsewhere && "$stepcast" sweep merge ../parts --csv ../parts.csv --json >../parts.json) ||
  fail "no merge"
same whole.json parts.json
same whole.csv parts.csv
same whole/results.json parts/results.json
same whole/results.h5 parts/results.h5
no_row_twice $points parts

# Read by others as well.
if python_with h5py; then
  "$python" -c "
import h5py, json
merged = h5py.File('parts/results.h5')['points']
rows = [row.get('step_time_s') for row in json.load(open('parts.json'))['points']]
read = merged['step_time_s'][()]
assert len(read) == len(rows) == $points
assert all(a == b if b else a != a for a, b in zip(read, rows))" || fail "h5py reads otherwise"
fi

# Of one study: its options belong to it. What is no sweep is not merged.
expect 3 "belongs to another study" sweep study/many.toml --out parts --shard 1/3 --resume --no-fold
expect 3 "has nothing of this sweep" sweep study/many.toml --out parts --status --no-fold
expect 0 "points" sweep study/many.toml --out unfolded --shard 1/288 --no-fold
expect 0 "interrupted" sweep merge unfolded --partial
expect 3 "is no folder of a sweep" sweep merge study
"$stepcast" run whole/points/0001.toml --out single >/dev/null
expect 3 "holds a single run" sweep merge single
expect 2 "unknown option" sweep merge parts --gpu h100
expect 2 "partial is for" sweep study/many.toml --out parts --partial
expect 2 "which folder" sweep study/many.toml --status
expect 2 "csv does nothing with --status" sweep --out parts --status --csv x.csv
expect 2 "status of which scenario" sweep --out parts --status --gpu a100

# A point that ends the program is tried once more, then its row; the others are not lost by it. It
# ends where it writes what it was asked, its times are known then.
scenario crash.toml '"cluster.nodes" = [2]' '"model.sequence" = [1024, 2048, 3072, 4096, 5120]'
crashes() { cat crash/results.jsonl 2>/dev/null | grep -c '"crashed":11' || true; }
for _ in 1 2; do
  (signal_at 1 11 crash/points &&
   exec "$stepcast" sweep crash.toml --no-fold --threads 1 --out crash --resume) >/dev/null 2>&1
done
[ "$(crashes)" -ge 2 ] || fail "a crash left no note"
expect 1 "ended the program" sweep crash.toml --no-fold --out crash --resume --json
expect 1 "failed: ended the program" sweep merge crash --refused

# Under GNU parallel: what it is told of a killed shard it runs again, and no other.
if command -v parallel >/dev/null 2>&1; then
  cat >shard.sh <<SH
[ "\$1" = 3 ] && [ ! -e died ] && touch died && kill -KILL \$\$
exec "$stepcast" sweep study/many.toml --out pulled --shard "\$1/4" --threads 1 --resume --quiet
SH
  parallel --will-cite --jobs 2 --joblog jobs.log sh shard.sh ::: 1 2 3 4 >parallel.txt 2>&1 &&
    fail "a killed shard went unnoticed"
  parallel --will-cite --retry-failed --joblog jobs.log >parallel.txt 2>&1 ||
    fail "not again: $(cat parallel.txt)"
  [ "$(grep -c together parallel.txt)" = 1 ] || fail "parallel ran more than what was killed"
  expect 0 "refused" sweep merge pulled
  same whole/results.json pulled/results.json
  same whole/results.h5 pulled/results.h5
  no_row_twice $points pulled
else
  echo "without GNU parallel: no parallel on PATH"
fi
exit $((failures > 0))
