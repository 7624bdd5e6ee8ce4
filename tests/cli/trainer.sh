# stepcast-trainer as a user calls it: ranks under MPI, and what happens when one of them, the disk or
# the caller fails. 77: skipped, with the reason.
# Usage: trainer.sh FOLDER_OF_PROGRAMS SOURCE_FOLDER
set -u
programs=$1
program=$programs/stepcast-trainer
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"
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
  { echo "skipped: built without OpenBLAS"; exit 77; }

# Mistakes of the user: a message that names the place, exit code 3, or 2 for the command line.
expect 2 'which scenario' --steps 3
expect 2 'is no such number' "$tiny" --steps none
expect 2 'leaves no step' "$tiny" --steps 3 --warm-up 3
expect 2 'need --checkpoint' "$tiny" --resume
expect 3 'nowhere.toml' "$work/nowhere.toml"
sed 's/hidden = 32/hidden = "many"/' "$tiny" >"$work/bad.toml"
expect 3 'bad.toml:4' "$work/bad.toml"
expect 3 'cannot be read' "$tiny" --text "$work/nowhere.txt"
sed 's/"host"/"dgx-h100"/' "$tiny" >"$work/gpu.toml"
expect 3 'cores of this machine' "$work/gpu.toml"

# Threads for ranks, real text, results, timeline.
expect 0 'step time' "$tiny" --ranks threads $short --text "$2/README.md" --out "$work/r.json" \
  --timeline "$work/t.json"
grep -q '"step_time_s"' "$work/r.json" || fail "no results"
grep -q 'measured rank 1' "$work/t.json" || fail "no rank 1 in the timeline"

# A full disk.
expect 3 'cannot be written' "$tiny" --ranks threads $short --out /dev/full
expect 3 'cannot be written' "$tiny" --ranks threads $short --timeline /dev/full

# A disk that fills while a checkpoint is written: told, and the one before is whole.
checkpoint="--ranks threads --checkpoint $work/kept"
expect 0 'step time' "$tiny" $checkpoint $short
output=$(
  trap '' XFSZ # writing beyond the limit is an error, not the end
  ulimit -f 8
  "$program" "$tiny" $checkpoint --resume $short 2>&1
)
[ $? -eq 3 ] || fail "a full disk under a checkpoint: $output"
expect 0 'in step 3' "$tiny" $checkpoint --resume $short
# One of another plan, and one that is damaged.
expect 3 'another model or plan' "$tiny" $checkpoint --resume $short --set plan.data=zero3
echo rubbish >"$work/kept/latest"
expect 3 'names no saved step' "$tiny" $checkpoint --resume $short

if ! command -v mpirun >/dev/null 2>&1; then
  [ $failures -eq 0 ] && echo "skipped: no mpirun on PATH" && exit 77
  exit 1
fi
if "$program" "$tiny" $short 2>&1 | grep -q 'built without MPI'; then
  [ $failures -eq 0 ] && echo "skipped: built without MPI" && exit 77
  exit 1
fi

for plan in plan.data=ddp plan.data=zero3 plan.tensor=2 plan.pipeline=2; do
  expect 0 'step time' "$tiny" $short --set "$plan"
done
"$program" "$tiny" $short --checkpoint "$work/mpi" >/dev/null 2>&1 ||
  fail "no checkpoint of two processes"
expect 0 'in step 3' "$tiny" $short --checkpoint "$work/mpi" --resume
expect 3 'cannot be written' "$tiny" $short --out /dev/full

# Starts a run that would take minutes and waits until it trains; sets `launcher`, `mpirun` and
# `ranks` (process ids).
start() {
  rm -rf "$work/alive"
  "$program" "$tiny" --steps 1000000 --checkpoint "$work/alive" --save-every 50 "$@" \
    >"$work/said" 2>&1 &
  launcher=$!
  for _ in $(seq 150); do
    [ -e "$work/alive/latest" ] && break
    sleep 0.2
  done
  mpirun=$(ps -o pid= --ppid $launcher | tr -d ' ')
  ranks=$(ps -o pid=,comm= --ppid "$mpirun" | awk '/stepcast-train/ {print $1}' | tr '\n' ' ')
  [ "$(echo "$ranks" | wc -w)" -eq 2 ] || fail "no two ranks train: $(head -3 "$work/said")"
}

# ended CODE PATTERN WHAT: the run is over within 30 seconds and nothing of it is left.
ended() {
  for _ in $(seq 150); do
    kill -0 $launcher 2>/dev/null || break
    sleep 0.2
  done
  kill -0 $launcher 2>/dev/null && fail "$3: still running" && kill -9 $launcher
  wait $launcher
  got=$?
  [ $got -eq "$1" ] || fail "$3: exit $got (wanted $1): $(head -3 "$work/said")"
  [ -z "$2" ] || grep -q -e "$2" "$work/said" || fail "$3: no \"$2\" in: $(head -3 "$work/said")"
  sleep 1
  for process in $mpirun $ranks; do
    case $(ps -o stat= -p "$process") in
      '' | Z*) ;; # gone, or ended and its new parent has not looked yet
      *) fail "$3: process $process is left" ;;
    esac
  done
}

start
kill -9 "${ranks%% *}"
ended 6 'was ended by signal 9' "a rank that is killed"

start --patience "3 s"
kill -STOP "${ranks%% *}"
ended 6 'waited . s for its peers' "a rank that hangs"

start --patience "1 s"
# shellcheck disable=SC2086  # the list of ranks
kill -STOP $ranks
ended 6 'said nothing' "a run that hangs altogether"

start
kill -INT $launcher
ended 130 '' "an interrupted run"

start
kill -9 $launcher
ended 137 '' "a launcher that is killed"

# No mpirun.
mkdir "$work/bin"
printf '#!/bin/sh\necho something broke >&2\nexit 1\n' >"$work/bin/mpirun"
chmod +x "$work/bin/mpirun"
saved_path=$PATH
PATH=$work/bin:$PATH
expect 1 'something broke' "$tiny" $short
PATH=$saved_path
exit $((failures > 0))
