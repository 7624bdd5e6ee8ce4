#!/bin/sh
# Searches and designs in parts: whatever ends them and whenever, put together they are one whole
# run, bit by bit, and no plan is simulated twice.
#   search_shards.sh FOLDER_OF_PROGRAMS SOURCE
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
# STEPCAST_CHECK=whole: more plans, more kills.
kills=4 fewer="--fix plan.virtual_stages=1" sizes="[64]"
[ "${STEPCAST_CHECK:-}" = whole ] && kills=20 fewer="" sizes="[64, 128]"
seed=${SEED:-1}
echo "SEED=$seed"

# bytes_to_kill WHOLE PARTS: for `killed`, where WHOLE is what a run keeps whom nobody kills, and
# PARTS have it. Each is killed after some of what would be left if all kills hit.
bytes_to_kill() {
  "$python" -c "
import random
random.seed('$seed/$1')
for i in range($kills): print(random.randint(1, $(cat "$1"/results*.jsonl | wc -c) // $kills))" >kills
  exec 3<kills
}
# killed PLACE COMMAND...: at a random byte of what it writes there, of those in the file `kills`
killed() {
  read -r byte <&3
  place=$1
  shift
  (signal_at "$byte" 9 "$place" && exec "$stepcast" "$@") >/dev/null 2>&1
  [ $? -ne 137 ] || hits=$((hits + 1))
  tried=$((tried + 1))
}
hits=0 tried=0

# plans FOLDER: rows of plans that are kept there
plans() {
  cat "$1"/results*.jsonl | grep -c '"step_ps"' || true
}
# every_plan_once FOLDER
every_plan_once() {
  cat "$1"/results*.jsonl | "$python" -c '
import json, sys
ids = [json.loads(line)["id"] for line in sys.stdin]
sys.exit(len(ids) - len(set(ids)))' || fail "a plan of $1 was simulated twice"
}

# A search of a file with a plan of its own, of which some plans do not fit and some cannot be
# launched. Beside it lies what it names.
mkdir study
cp "$2/scenarios/models/llama2-7b.toml" study/own.toml
cat >study/search.toml <<'TOML'
[model]
name = "own.toml"
[cluster]
node = "dgx-h100"
nodes = 2
[plan]
data = "zero1"
tensor = 4
[batch]
global = 64
micro_batch = 2
[software]
framework = "megatron-core"
[space]
"plan.data" = ["zero1", "ddp"]
"plan.prefetch" = 1
"plan.shard_degree" = 0
TOML
search="study/search.toml --fix plan.reduce=software $fewer --top 20 --quiet"
"$stepcast" search $search --json >whole.json || fail "no search"
expect 0 "optimal among" search $search --out whole
cmp -s whole.json whole/search.json || fail "with --out the answer is another"
needed=$(plans whole)
[ "$needed" -ge 20 ] || fail "$needed plans are too few to be cut"
[ "$("$stepcast" search --out whole --status | head -n 1)" = "$needed plans simulated; finished" ] ||
  fail "$("$stepcast" search --out whole --status)"
expect 3 "is there already.*--resume goes on" search $search --out whole

# Nothing is simulated again: the answer comes of the rows alone.
expect 0 "optimal among" search $search --out whole --resume
[ "$(plans whole)" -eq "$needed" ] || fail "plans that were known were simulated"
same whole.json whole/search.json

# Killed at random bytes, gone on with each time.
bytes_to_kill whole
for i in $(seq $kills); do
  shard=$((1 + i % 3))
  killed parts/results.$shard-of-3.jsonl search $search --out parts --shard $shard/3 --threads 1 --resume
done
expect 0 "plans simulated; " search --out parts --status
for shard in 1 2 3; do
  expect 0 "^shard $shard/3 finished: .* search merge parts puts the shards together" \
    search $search --out parts --shard $shard/3 --resume
done
expect 0 "plans simulated; finished" search --out parts --status
expect 0 '"finished": true' search --out parts --status --json
all=$(plans parts)
mkdir elsewhere
(cd elsewhere && "$stepcast" search merge ../parts --quiet --json --csv ../merged.csv >../merged.json) ||
  fail "no merge"
same whole.json merged.json
same whole.json parts/search.json
for file in search.txt plans.svg best.toml megatron.args; do same "whole/$file" "parts/$file"; done
every_plan_once parts
# The user's own plan beside the best is not a plan of the search.
[ "$(($(plans parts) - all))" -le 8 ] || fail "merge simulated $(($(plans parts) - all)) plans"
expect 0 "optimal among" search merge parts

# One whole search, killed and gone on with; asked to end, it says what it has, and goes on.
bytes_to_kill whole
for _ in 1 2 3; do
  killed whole2/results.jsonl search $search --out whole2 --threads 1 --resume
done
expect 0 "nothing found among " search $search --out whole2 --resume --time 1us
[ -s whole2/search.json ] || fail "what was found in time is not written"
"$stepcast" search $search --out whole2 --resume --json >again.json || fail "not gone on"
same whole.json again.json
same whole.json whole2/search.json
every_plan_once whole2
(signal_at 100 15 ended/results.jsonl && exec "$stepcast" search $search --out ended --threads 1) \
  >ended.txt 2>&1
code=$?
[ $code -eq 143 ] || fail "SIGTERM: $(cat ended.txt)"
grep -q "resume goes on" ended.txt || fail "$(cat ended.txt)"
"$stepcast" search $search --out ended --resume --json >again.json || fail "not gone on"
same whole.json again.json
same whole.json ended/search.json

# A part of the shards: what is there, and what is open.
expect 0 "shard 2/3 finished" search $search --out third --shard 2/3
expect 3 "third: not finished: 1/3, 3/3, .*--resume goes on, --partial" search merge third
expect 0 "plans simulated; not finished: 1/3, 3/3" search --out third --status
expect 0 "^the best found among " search merge third --partial
expect 0 "shard 1/3 is not finished" search $search --out third --shard 1/3 --time 1us
expect 3 "is there already" search $search --out third --shard 2/3
expect 0 '"known": [1-9]' search $search --out third --shard 2/3 --resume --json

# Of one study: its options belong to it. What is another's stays.
expect 3 "belongs to another study" search $search --out whole --resume --all
expect 3 "belongs to another study" search $search --out whole --fix plan.tensor=1
expect 3 "belongs to another study" search $search --out parts --shard 1/3 --objective joules-per-token
expect 3 "is no folder of a design" design merge whole
expect 3 "is no folder of a sweep" sweep merge whole
expect 3 "is no folder of a search" search --out study --status
scenario sweep.toml '"cluster.nodes" = [1, 2]'
expect 3 "belongs to another study" sweep sweep.toml --out whole
expect 0 "nodes" sweep sweep.toml --out sweep
expect 3 "belongs to another study" search $search --out sweep
mkdir mine
echo mine >mine/search.json
expect 3 "search.json' is there already" search $search --out mine
[ "$(cat mine/search.json)" = mine ] || fail "the user's file is gone"
echo "# mine" >>third/scenario.toml
expect 3 "is not what stepcast wrote" search merge third --partial
(signal_at 100 19 both/results.jsonl &&
 exec "$stepcast" search $search --all --out both --threads 1) >/dev/null 2>&1 &
pid=$!
wait_until stopped $pid || fail "no first writer"
expect 3 "is being written by another" search $search --all --out both --resume
kill -KILL $pid
wait $pid 2>/dev/null

# Mistakes, and what means nothing together.
expect 2 "shard is for the plans in --out" search $search --shard 1/2
expect 2 "resume is for the plans in --out" search $search --resume
expect 2 "csv does nothing with --shard" search $search --out x --shard 1/2 --csv x.csv
expect 2 "limit does nothing with --shard" search $search --out x --shard 1/2 --limit 5
expect 2 "partial is for stepcast search merge" search $search --out x --partial
expect 2 "status is of --out DIR alone" search $search --status --out parts
expect 2 "unknown option" search merge parts --top 3
expect 2 "which folder" search merge
expect 2 "print-slurm wants --out" search $search --print-slurm 4
expect 2 "shard does nothing with --print-slurm" search $search --out x --print-slurm 4 --shard 1/4
expect 3 "no knob" search $search --out x --fix plan.tensr=1 --print-slurm 4
"$stepcast" search $search --out "x y" --print-slurm 4 >job.sh || fail "no script"
sh -n job.sh || fail "no script: $(cat job.sh)"
for line in '#SBATCH --array=1-4' '# Then: stepcast search merge .x y.' '#SBATCH --job-name=stepcast-search'; do
  grep -q -x -e "$line" job.sh || fail "no $line in $(cat job.sh)"
done
grep -v SBATCH job.sh | sed 's/^exec srun --ntasks=1 --cpus-per-task=1 /exec /' >one.sh
for shard in 1 2 3 4; do
  SLURM_ARRAY_TASK_ID=$shard sh one.sh >/dev/null || fail "shard $shard of the script"
done
"$stepcast" search merge "x y" --json --quiet >again.json || fail "no merge"
same whole.json again.json

# A disk that is full: the answer is printed, and what is kept is gone on with.
if command -v prlimit >/dev/null 2>&1; then
  { prlimit --fsize=20000 "$stepcast" search $search --out disk --json 2>disk.txt; echo $? >code; } |
    cat >all.json  # to its end: who writes into a closed pipe has another code
  head -c "$(wc -c <whole.json)" all.json >again.json  # what follows is the mistake, as an object
  [ "$(cat code)" -eq 7 ] || fail "a full disk: $(cat disk.txt)"
  same whole.json again.json
  grep -q "results.jsonl: cannot be written" disk.txt || fail "$(cat disk.txt)"
  prlimit --fsize=9000 "$stepcast" search $search --out disk2 --shard 1/2 >disk.txt 2>&1
  [ $? -eq 7 ] || fail "a full disk: $(cat disk.txt)"
  grep -q "shard 1/2 is not finished" disk.txt || fail "$(cat disk.txt)"
  expect 0 "optimal" search $search --out disk --resume
  same whole.json disk/search.json
fi

# A design: its shards are machines.
sed "s/^sizes = .*/sizes = $sizes/" "$2/scenarios/design/llama3-70b-2t.toml" >goal.toml
"$stepcast" design goal.toml --quiet --json >design.json || fail "no design"
expect 0 "^2.00T tokens" design goal.toml --quiet --out machines
same design.json machines/design.json
needed=$(plans machines)
expect 3 "is there already.*--resume goes on" design goal.toml --out machines
bytes_to_kill machines
for i in $(seq $kills); do
  shard=$((1 + i % 2))
  killed shards/results.$shard-of-2.jsonl design goal.toml --out shards --shard $shard/2 --threads 1 --resume
done
for shard in 1 2; do
  expect 0 "^shard $shard/2 finished: .* design merge shards" design goal.toml --out shards --shard $shard/2 \
    --resume
done
all=$(plans shards)
"$stepcast" design merge shards --json --quiet >again.json || fail "no merge"
same design.json again.json
same design.json shards/design.json
for file in design.txt bill.csv cheapest.toml; do same "machines/$file" "shards/$file"; done
every_plan_once shards
echo "design: $needed plans at once, $all by shards, $(($(plans shards) - all)) by merge"
[ "$(($(plans shards) - all))" -le $((needed / 4)) ] || fail "the merge had most to do"
expect 0 "plans simulated; finished" design --out shards --status
bytes_to_kill machines
for _ in 1 2; do
  killed machines2/results.jsonl design goal.toml --out machines2 --threads 1 --resume
done
"$stepcast" design goal.toml --quiet --json --out machines2 --resume >again.json || fail "not gone on"
same design.json again.json
every_plan_once machines2
expect 3 "belongs to another study" design goal.toml --out machines --resume --set model.sequence=1024
expect 0 "shard 1/2 is not finished" design goal.toml --out half --shard 1/2 --time 1us
expect 3 "not finished: 1/2, 2/2" design merge half
expect 2 "csv does nothing with --shard" design goal.toml --out half --resume --shard 1/2 --csv x.csv
"$stepcast" design goal.toml --out "x z" --print-slurm 2 >job.sh || fail "no script"
sh -n job.sh || fail "no script: $(cat job.sh)"
grep -q "design merge" job.sh || fail "$(cat job.sh)"
echo "$hits of $tried kills hit"
[ $hits -ge $((tried / 2)) ] || fail "whatever was to be killed had ended"
exit $((failures > 0))
