# stepcast-trainer as a user calls it: ranks as processes and under MPI, and what happens when one of
# them, the disk or the caller fails. 77: skipped, with the reason.
# Usage: trainer.sh FOLDER_OF_PROGRAMS SOURCE_FOLDER
set -u
programs=$1
program=$programs/stepcast-trainer
sources=$2
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/patience.sh
. "$2/tests/cli/shared/patience.sh"
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"
# MPI leaves memory behind at its end, which is not ours to judge.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"

fail() {
  echo "$1"
  failures=$((failures + 1))
}

cat >"$work/tiny.toml" <<'TOML'
[model]
name = "tiny"
layers = 2
hidden = 32
heads = 2
kv_heads = 2
head_dim = 16
ffn_hidden = 48
vocab = 64
norm = "rmsnorm"
activation = "swiglu"
rope = true
sequence = 16
[cluster]
node = "host"
[batch]
local = 2
[precision]
compute = "fp32"
gradient_reduce = "fp32"
[software]
framework = "stepcast-trainer"
TOML
tiny=$work/tiny.toml
short="--steps 3 --warm-up 1"

"$program" "$tiny" --ranks threads $short 2>&1 | grep -q OpenBLAS &&
  { echo "skipped: no OpenBLAS"; exit 77; }

# Mistakes of the user: a message that names the place, exit code 3, or 2 for the command line.
expect 2 'which scenario' --steps 3
expect 2 'is no such number' "$tiny" --steps none
expect 2 'leaves no step' "$tiny" --steps 3 --warm-up 3
expect 2 'need --checkpoint' "$tiny" --resume
expect 3 'nowhere.toml' "$work/nowhere.toml"
sed 's/hidden = 32/hidden = "many"/' "$tiny" >"$work/bad.toml"
expect 3 'bad.toml:4' "$work/bad.toml"
expect 3 'cannot be opened' "$tiny" --text "$work/nowhere.txt"
expect 2 'is none of mpi' "$tiny" --ranks many
expect 2 'is for a scenario of GPUs' "$tiny" --gpus 1

# On a GPU, where there is none.
if ! command -v nvidia-smi >/dev/null 2>&1; then
  sed -e 's/"host"/"dgx-h100"/' -e 's/compute = "fp32"/compute = "bf16"/' -e 's/"stepcast-trainer"/"stepcast-trainer-cuda"/' \
    "$tiny" >"$work/gpu.toml"
  expect 3 'no GPU here\|built without CUDA' "$work/gpu.toml" $short
  expect 3 'no GPU here\|built without CUDA' "$work/gpu.toml" $short --set plan.tensor=2
fi

# Threads for ranks, real text, results, timeline.
expect 0 'step time' "$tiny" --ranks threads $short --text "$2/README.md" --out "$work/r.json" \
  --timeline "$work/t.json"
grep -q '"step_time_s"' "$work/r.json" || fail "no results"
grep -q 'measured rank 1' "$work/t.json" || fail "no rank 1 in the timeline"

# A full disk.
expect 7 'cannot be written' "$tiny" --ranks threads $short --out /dev/full
expect 7 'cannot be written' "$tiny" --ranks threads $short --timeline /dev/full

# A disk that fills while a checkpoint is written: told, and the one before is whole.
checkpoint="--ranks threads --checkpoint $work/kept"
expect 0 'step time' "$tiny" $checkpoint $short
output=$(
  trap '' XFSZ # writing beyond the limit is an error, not the end
  ulimit -f 8
  "$program" "$tiny" $checkpoint --resume $short 2>&1
)
[ $? -eq 7 ] || fail "a full disk under a checkpoint: $output"
expect 0 'in step 3' "$tiny" $checkpoint --resume $short
# One of another plan, and one that is damaged.
expect 3 'another model or plan' "$tiny" $checkpoint --resume $short --set plan.data=zero3
expect 3 'another scenario' "$tiny" $checkpoint --resume $short --set model.name=other
# Files of ranks that were swapped.
saved=$(echo "$work"/kept/step-*)
mv "$saved/rank-0000-of-0002.h5" "$work/aside.h5"
mv "$saved/rank-0001-of-0002.h5" "$saved/rank-0000-of-0002.h5"
mv "$work/aside.h5" "$saved/rank-0001-of-0002.h5"
expect 3 'is of rank' "$tiny" $checkpoint --resume $short
echo rubbish >"$work/kept/latest"
expect 3 'names no saved step' "$tiny" $checkpoint --resume $short

# ---- Ranks as processes: with MPI and without.

kinds=processes
if command -v mpirun >/dev/null 2>&1 && ! "$program" "$tiny" --ranks mpi $short 2>&1 |
  grep -q 'built without MPI'; then
  kinds="processes mpi"
fi
losses() { "$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["losses"])' "$1"; }

for plan in plan.data=ddp plan.data=zero3 plan.tensor=2 plan.pipeline=2; do
  expect 0 'step time' "$tiny" $short --ranks threads --set "$plan" --out "$work/threads.json"
  losses "$work/threads.json" >"$work/losses" || fail "no losses"
  for kind in $kinds; do
    expect 0 'step time' "$tiny" $short --ranks $kind --set "$plan" --out "$work/$kind.json"
    losses "$work/$kind.json" | cmp -s - "$work/losses" ||
      fail "$plan: other losses under $kind than under threads"
  done
done

# A thread for each lane: the same losses over sockets as over threads, whatever runs beside what.
sed 's/"stepcast-trainer"/"stepcast-trainer-lanes"/' "$tiny" >"$work/lanes.toml"
for plan in plan.data=ddp plan.data=zero1 "plan.data=zero3 --set plan.prefetch=2" \
  "plan.pipeline=2 --set plan.virtual_stages=2 --set batch.micro_batch=1 --set model.layers=4"; do
  # shellcheck disable=SC2086  # several settings
  expect 0 'step time' "$work/lanes.toml" $short --ranks threads --set $plan \
    --out "$work/threads.json"
  losses "$work/threads.json" >"$work/losses" || fail "no losses"
  # shellcheck disable=SC2086
  expect 0 'step time' "$work/lanes.toml" $short --set $plan --out "$work/lanes.json"
  losses "$work/lanes.json" | cmp -s - "$work/losses" || fail "$plan: other losses on lanes"
done
expect 2 'take --ranks processes' "$work/lanes.toml" $short --ranks mpi
expect 2 'it has no lanes' "$work/lanes.toml" $short --compute waits
expect 3 'no context parallelism' "$tiny" $short --set plan.context=2

for kind in $kinds; do
  checkpoint="--ranks $kind --checkpoint $work/$kind"
  "$program" "$tiny" $short $checkpoint >/dev/null 2>&1 || fail "no checkpoint of $kind"
  expect 0 'in step 3' "$tiny" $short $checkpoint --resume
  expect 7 'cannot be written' "$tiny" $short --ranks $kind --out /dev/full
done

# Starts a run that would take hours and waits until it trains; sets `launcher` and `children`
# (process ids): the ranks, and mpirun.
start() {
  kind=$1
  shift
  rm -rf "$work/alive"
  "$program" "$tiny" --steps 10000000 --checkpoint "$work/alive" --save-every 50 --ranks "$kind" \
    "$@" >"$work/said" 2>&1 &
  launcher=$!
  wait_until [ -e "$work/alive/latest" ]
  parent=$launcher
  [ "$kind" = mpi ] && parent=$(children_of $launcher mpirun)
  ranks=$(children_of "$parent" stepcast-traine | tr '\n' ' ')
  children="$ranks $([ "$kind" = mpi ] && echo "$parent")"
  [ "$(echo "$ranks" | wc -w)" -eq 2 ] ||
    fail "$kind: no two ranks train: $(head -3 "$work/said")"
}

# is_over CODE PATTERN WHAT: the run comes to its end and nothing of it is left.
is_over() {
  wait_until ended $launcher || { fail "$kind: $3: still running" && kill -9 $launcher; }
  wait $launcher
  got=$?
  [ $got -eq "$1" ] || fail "$kind: $3: exit $got (wanted $1): $(head -3 "$work/said")"
  [ -z "$2" ] || grep -q -e "$2" "$work/said" ||
    fail "$kind: $3: no \"$2\" in: $(head -3 "$work/said")"
  # shellcheck disable=SC2086  # the list of processes
  wait_until ended $children || fail "$kind: $3: one of the processes $children is left"
}

for kind in $kinds; do
  start $kind
  kill -9 "${ranks%% *}"
  is_over 6 'was ended by signal 9' "a rank that is killed"

  start $kind --patience "$(patience 3) s"
  kill -STOP "${ranks%% *}"
  is_over 6 'waited [0-9]* s for its peers' "a rank that hangs"

  # The launcher waits twice the patience and ten seconds more.
  start $kind --patience "$(patience 2) s"
  # shellcheck disable=SC2086  # the list of ranks
  kill -STOP $ranks
  is_over 6 'said nothing' "a run that hangs altogether"

  start $kind
  kill -INT $launcher
  is_over 130 '' "an interrupted run"

  start $kind
  kill -9 $launcher
  is_over 137 '' "a launcher that is killed"
done

# The same where threads wait for the peers.
one_lane=$tiny
tiny=$work/lanes.toml
start processes
kill -9 "${ranks%% *}"
is_over 6 'was ended by signal 9' "lanes, a rank that is killed"
start processes --patience "$(patience 3) s"
kill -STOP "${ranks%% *}"
is_over 6 'waited [0-9]* s for its peers' "lanes, a rank that hangs"
start processes
kill -INT $launcher
is_over 130 '' "lanes, an interrupted run"
tiny=$one_lane

# ---- Several nodes: a command on each, here all on this one.

expect 2 'go together' "$tiny" --nodes 2 --rendezvous "$work/run"
expect 2 'needs --rendezvous' "$tiny" --nodes 2 --node 0
expect 3 'do not go evenly' "$tiny" --nodes 3 --node 0 --rendezvous "$work/run" $short

# node I ARGUMENT...: one node's command, in the background; sets `process`.
node() {
  number=$1
  shift
  "$program" "$tiny" --nodes 2 --node "$number" "$@" >"$work/node$number" 2>&1 &
  process=$!
}

# meet PLACE: both nodes train together.
meet() {
  node 1 --rendezvous "$1" $short --out "$work/nodes.json"
  expect 0 'step time' "$tiny" --nodes 2 --node 0 --rendezvous "$1" $short --out "$work/nodes.json"
  wait $process || fail "node 1 of $1: $(head -3 "$work/node1")"
  losses "$work/nodes.json" | cmp -s - "$work/ddp" || fail "other losses over two nodes"
}
"$program" "$tiny" $short --ranks threads --out "$work/ddp.json" >/dev/null 2>&1
losses "$work/ddp.json" >"$work/ddp"
meet "$work/run"
[ -e "$work/run" ] && fail "the rendezvous file is left"
export STEPCAST_TRAINER_TOKEN="trainer.sh-$$"

# A port that is free now may be another's when rank 0 comes to it: then the next one, of those that
# the kernel gives to nobody who asks for any.
for _ in 1 2 3 4 5 6 7 8 9 10; do
  port=$("$python" -c 'import random; print(random.SystemRandom().randrange(20000, 32000))')
  node 1 --rendezvous "localhost:$port" $short --out "$work/nodes.json"
  output=$("$program" "$tiny" --nodes 2 --node 0 --rendezvous "localhost:$port" $short \
    --out "$work/nodes.json" 2>&1)
  got=$?
  [ $got -eq 0 ] || kill $process
  wait $process || got=1
  case $output in *"in use"*) ;; *) break ;; esac
done
[ $got -eq 0 ] || fail "two nodes at a port: $output $(head -3 "$work/node1")"
losses "$work/nodes.json" | cmp -s - "$work/ddp" || fail "other losses over two nodes at a port"
(unset STEPCAST_TRAINER_TOKEN
 failures=0
 expect 3 'is open to whoever knocks' "$tiny" --nodes 2 --node 1 --rendezvous "localhost:$port"
 exit $failures) || failures=$((failures + 1))

# Nodes that differ in what they train, or in how: told apart at once. Node 0 waits for the right one.
node 0 --rendezvous "$work/run" $short --out "$work/nodes.json"
patient=$process
wait_until says_in "$work/run" ' end$' || fail "node 0 has no file: $(head -3 "$work/node0")"
# differs WHAT ARGUMENT...: node 1 with these
differs() {
  wanted=$1
  shift
  expect 3 "$wanted" "$tiny" --nodes 2 --node 1 --rendezvous "$work/run" "$@"
  wait_until says_in "$work/node0" "rank 1 was refused: $wanted" ||
    fail "no word of node 0: $(head -3 "$work/node0")"
}
differs 'its scenario is' $short --set batch.local=4
differs 'its scenario is' $short --set model.sequence=32
differs 'its --steps is 4' --steps 4 --warm-up 1
differs 'its --text is' $short --text "$sources/README.md"
# Without the word it may be that another run is meant, which it waits for as long as it may.
STEPCAST_TRAINER_TOKEN='' expect 6 'found no run of 2 ranks' "$tiny" --nodes 2 --node 1 \
  --rendezvous "$work/run" --patience "1 s" --steps 5 --warm-up 1
wait_until says_in "$work/node0" 'rank 1 was refused: its --steps is 5' ||
  fail "no word of node 0: $(head -3 "$work/node0")"
expect 0 '' "$tiny" --nodes 2 --node 1 --rendezvous "$work/run" $short \
  --out "$work/nodes.json"
wait $patient || fail "node 0 after nodes that differ: $(head -3 "$work/node0")"
losses "$work/nodes.json" | cmp -s - "$work/ddp" || fail "other losses after nodes that differ"

# One node alone: ends when its patience does.
expect 6 'has not appeared' "$tiny" --nodes 2 --node 1 --rendezvous "$work/run" --patience "1 s"
expect 6 '1 of 2 ranks came' "$tiny" --nodes 2 --node 0 --rendezvous "$work/run" --patience "1 s"
[ -e "$work/run" ] && fail "the rendezvous file of a run that did not begin is left"

# A run that lives keeps its file; killed, it leaves one that the next run does not fall for. A node
# whose peers are gone ends.
long="--steps 10000000 --rendezvous $work/run"
rm -rf "$work/alive"
node 1 $long --checkpoint "$work/alive" --save-every 50
second=$process
node 0 $long --checkpoint "$work/alive" --save-every 50
first=$process
wait_until [ -e "$work/alive/latest" ] || fail "two nodes do not train: $(head -3 "$work/node1")"
expect 3 'still alive' "$tiny" --nodes 2 --node 0 --rendezvous "$work/run" $short
kill -9 $first
wait $first
wait $second
got=$?
[ $got -eq 6 ] || fail "a node whose peers are gone: exit $got: $(head -3 "$work/node1")"
grep -q 'lost rank 0' "$work/node1" || fail "no 'lost rank 0' in: $(head -3 "$work/node1")"
[ -e "$work/run" ] || fail "no stale file to try"
meet "$work/run"

# Under another launcher: its processes are the ranks.
case $kinds in
  *mpi*)
    root=$([ "$(id -u)" -eq 0 ] && echo --allow-run-as-root)
    for more in "" "--ranks processes --rendezvous $work/run"; do
      output=$(mpirun -n 2 --oversubscribe $root "$program" "$tiny" $short $more 2>&1) ||
        fail "under mpirun $more: $(echo "$output" | head -3)"
    done
    output=$(mpirun -n 2 --oversubscribe $root "$program" "$tiny" $short --ranks processes 2>&1) &&
      fail "under mpirun without a rendezvous: exit 0"
    echo "$output" | grep -q 'where do they meet' || fail "no hint: $(echo "$output" | head -3)"

    # An mpirun that does not work.
    mkdir "$work/bin"
    printf '#!/bin/sh\necho something broke >&2\nexit 1\n' >"$work/bin/mpirun"
    chmod +x "$work/bin/mpirun"
    saved_path=$PATH
    PATH=$work/bin:$PATH
    expect 1 'something broke' "$tiny" $short --ranks mpi
    PATH=$saved_path
    ;;
esac
exit $((failures > 0))
