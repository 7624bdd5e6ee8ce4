#!/bin/sh
# The script of --print-slurm in a real Slurm of four nodes on this machine: a node is lost and a
# time limit comes in the middle, nothing is lost and nothing twice. 77: skipped, with the reason.
#   sweep_slurm.sh FOLDER_OF_PROGRAMS SOURCE
set -u
programs=$1
stepcast=$programs/stepcast
# shellcheck disable=SC2034 # of expect.sh
program=$stepcast
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/sweeps.sh
. "$2/tests/cli/shared/sweeps.sh"
# shellcheck source=tests/cli/shared/slurm.sh
. "$2/tests/cli/shared/slurm.sh"
# shellcheck source=tests/cli/shared/signals.sh
. "$2/tests/cli/shared/signals.sh"
cd "$work" || exit 1

scenario many.toml '"model.sequence" = [512, 1024, 1536, 2048, 2560, 3072, 3584, 4096, 4608, 5120]' \
  '"plan.tensor" = [1, 2]' '"cluster.nodes" = [1, 2, 3, 4]'
points=80
expect 2 "print-slurm wants --out" sweep many.toml --print-slurm 4
expect 2 "81 shards of 80 points" sweep many.toml --print-slurm 81 --out parts
expect 2 "shard does nothing with --print-slurm" sweep many.toml --print-slurm 4 --out parts --shard 1/2
"$stepcast" sweep many.toml --no-fold --out parts --resume --print-slurm 4 >job.sh || fail "no script"
sh -n job.sh || fail "no script: $(cat job.sh)"
for line in --array=1-4 --requeue --signal=TERM@60 --cpus-per-task=1; do
  grep -q -x -e "#SBATCH $line" job.sh || fail "no $line in the script"
done
[ ! -e parts ] || fail "a script was asked for, and something was run"

if [ "${STEPCAST_CHECK:-}" != whole ]; then
  echo "not in a Slurm, that takes STEPCAST_CHECK=whole"
  exit $((failures > 0))
fi
lacks=$(slurm_lacks | head -n 1)
[ -z "$lacks" ] || { echo "skipped: $lacks"; exit $((failures > 0 ? 1 : 77)); }
trap 'stop_slurm; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
if ! start_slurm; then
  [ "$(id -u)" = 0 ] && fail "Slurm does not start"
  echo "skipped: Slurm does not start without root"
  exit 77
fi
"$stepcast" sweep many.toml --no-fold --out whole >/dev/null || fail "no sweep"
line=$(($(wc -c <whole/results.jsonl) / points))

# waits COMMAND...: until it succeeds
waits() {
  wait_until "$@" 2>/dev/null && return
  squeue
  fail "never: $*"
}
gone() {
  [ -z "$(squeue -h -j "$1" 2>/dev/null)" ]
}
state_of() {
  squeue -h -j "$1" -o %t
}
pends() {
  [ "$(state_of "$1")" = PD ]
}
submit() {
  sbatch --parsable "$@" job.sh
}

# A shard whose time ends: it stands still after some points, so that it is long enough.
limited=$(signal_at $((3 * line)) 19 parts/results.4-of-4.jsonl && submit --array=4 --time=600) ||
  fail "sbatch"
stands() {
  for number in $(stats_of_processes | awk '/^[0-9]+ \(stepcast\) T/ { print $1 }'); do
    [ "$(readlink "/proc/$number/cwd")" = "$(pwd -P)" ] && return
  done
  return 1
}
waits stands
scontrol update jobid="${limited}_4" timelimit=1 || fail "no other limit"
kept=$(wc -l <parts/results.4-of-4.jsonl)

# A node is lost, where a shard stands still after most of its points: Slurm starts it anew on
# another one.
array=$(signal_at $((15 * line)) 19 parts/results.2-of-4.jsonl && submit --array=1-3) || fail "sbatch"
until_lines 10 parts/results.2-of-4.jsonl
node=$(squeue -h -j "${array}_2" -o %N)
[ -n "$node" ] || fail "shard 2 is on no node"
lose_node "$node"
before=$(wc -l <parts/results.2-of-4.jsonl)
[ "$before" -lt 20 ] || fail "the node was lost too late"
scontrol update nodename="$node" state=down reason=lost  # what slurmctld finds out in half a minute
waits pends "${array}_2"
scontrol update jobid="${array}_2" starttime=now  # and waits two minutes
waits gone "$array"
[ "$(wc -l <parts/results.2-of-4.jsonl)" = 20 ] || fail "the shard of the lost node: $(cat slurm-*)"
grep -q "^20 of $points points" "slurm-${array}_2.out" || fail "$(cat slurm-*)"

# Slurm wakes what it asks to end; the running point is finished and kept.
told_to_end() {
  scontrol show job "${limited}_4" | grep -q ExitCode=143:0
}
waits told_to_end
waits gone "$limited"
[ "$(wc -l <parts/results.4-of-4.jsonl)" -gt "$kept" ] || fail "the running point was not saved"
grep -q "resume goes on" "slurm-${limited}_4.out" || fail "$(cat slurm-*)"
expect 3 "points are missing" sweep merge parts
again=$(submit --array=4) || fail "sbatch"
waits gone "$again"

no_row_twice $points parts
"$stepcast" sweep merge parts >/dev/null || fail "no merge"
same whole/results.json parts/results.json
same whole/results.h5 parts/results.h5
exit $((failures > 0))
