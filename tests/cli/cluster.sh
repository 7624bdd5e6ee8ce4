# stepcast validate cluster as a user calls it: two nodes in a box, and what is left of one that is
# killed. That it works, not how near: other programs run meanwhile. 77: skipped, with the reason.
# Usage: cluster.sh FOLDER_OF_PROGRAMS SOURCE_FOLDER
set -u
programs=$1
program=$programs/stepcast-validate
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/patience.sh
. "$2/tests/cli/shared/patience.sh"
# MPI leaves memory behind at its end, which is not ours to judge.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
mkdir "$work/tmp"
export TMPDIR=$work/tmp

skip() {
  echo "skipped: $1"
  exit 77
}
fail() {
  echo "$1"
  failures=$((failures + 1))
}

cat >"$work/tiny.toml" <<'TOML'
title = "two nodes"
[model]
name = "tiny"
layers = 2
hidden = 64
heads = 2
kv_heads = 2
head_dim = 32
ffn_hidden = 96
vocab = 128
norm = "rmsnorm"
activation = "swiglu"
rope = true
sequence = 32
[cluster]
nodes = 2
[cluster.node]
name = "host"
gpus = 1
nic = "1 Gbit/s"
[cluster.fabric]
name = "fat-tree"
[batch]
local = 2
[precision]
compute = "fp32"
gradient_reduce = "fp32"
[software]
framework = "stepcast-trainer"
[[sweep.point]]
"plan.data" = "ddp"
[[sweep.point]]
"plan.data" = "zero3"
[[sweep.point]]
"plan.context" = 2
[[sweep.point]]
"plan.data" = "ddp"
"plan.expert" = 2
"model.experts" = 4
"model.experts_per_token" = 2
"model.expert_ffn" = 96
[[sweep.point]]
"plan.data" = "ddp"
"plan.expert" = 2
"plan.capacity_factor" = 1.5
"plan.pad_to_capacity" = true
"model.experts" = 4
"model.experts_per_token" = 2
"model.expert_ffn" = 96
TOML
tiny=$work/tiny.toml
{
  sed '/^\[\[sweep.point\]\]/,$d; /^sequence/a\
experts = 4\
experts_per_token = 2\
expert_ffn = 96' "$tiny"
  echo '[plan]'
  echo 'data = "ddp"'
  echo 'expert = 2'
} >"$work/experts.toml"

expect 2 'which scenario' cluster
expect 2 'is none of own' cluster "$tiny" --fabric 3to1
expect 2 'is none of kernels' cluster "$tiny" --compute nothing

# Without iproute2: one sentence.
mkdir "$work/bin"
PATH=$work/bin "$program" cluster "$tiny" >"$work/bare.txt" 2>&1
[ $? -eq 77 ] || fail "no ip, but not skipped"
grep -q 'no cluster in a box here: there is no .ip. on PATH' "$work/bare.txt" ||
  fail "$(cat "$work/bare.txt")"

# Where nobody may make namespaces: one sentence as well.
if unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces' 2>/dev/null; then
  unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces &&
    exec setpriv --inh-caps=-all --bounding-set=-all "$0" cluster "$1"' \
    "$program" "$tiny" >"$work/refused.txt" 2>&1
  [ $? -eq 77 ] || fail "no namespaces, but not skipped"
  grep -q 'lets this user make no namespaces' "$work/refused.txt" || fail "$(cat "$work/refused.txt")"
fi

"$program" cluster "$work/nowhere.toml" >"$work/first.txt" 2>&1
[ $? -eq 77 ] && skip "$(head -1 "$work/first.txt")"
grep -q nowhere.toml "$work/first.txt" || fail "a scenario that is not there is not named"
"$programs/stepcast-calibrate" run --device host --for /nowhere.toml --out "$work/t.h5" 2>&1 |
  grep -q OpenBLAS && skip "no OpenBLAS"

expect 0 'compute by waits: median' cluster "$tiny" --quick --table "$work/host.h5" --compute waits \
  --fabric nonblocking,slow-nic,2:1 --steps 6 --warm-up 1 --report "$work" --parts
printf '%s\n' "$output" >"$work/text.txt"
for line in 'nonblocking: 2 nodes of 125 MB/s' 'slow-nic: 2 nodes' 'node 0 to 1' 'allreduce of' \
  'data zero3' 'adamw' 'not run: context 2' 'not run: .*expert 2.*where a router says' \
  'expert 2, capacity_factor 1.5.*  [0-9]' '^permute' '^gemm' '^all_to_all expert' 'not run: 2:1 on 2 nodes'; do
  grep -q -e "$line" "$work/text.txt" || fail "no \"$line\" in the report"
done
ls "$work"/tiny_*.md >/dev/null 2>&1 || fail "no report was written"
expect 5 '"median_error"' cluster "$tiny" --as-calibrated --table "$work/host.h5" --compute waits \
  --steps 3 --warm-up 1 --json --tolerance 0

# Experts whose rows the router tells, computed: no point that waits would do.
expect 0 'compute by kernels: median' cluster "$work/experts.toml" --quick --table "$work/host.h5" \
  --compute kernels --steps 4 --warm-up 1 --parts
printf '%s\n' "$output" >"$work/text.txt"
for line in '^router ' '^permute ' '^gemm ' '^weighted_silu_mul ' '^all_to_all expert '; do
  grep -q -e "$line" "$work/text.txt" || fail "no \"$line\" beside the measured experts"
  # Both of them above nothing.
  grep -e "$line" "$work/text.txt" | grep -q ' 0 ps ' && fail "one side has no \"$line\""
done
grep -q 'not run' "$work/text.txt" && fail "experts were refused"

# Two jobs on four nodes, every second node each.
expect 0 'data ddp, job 2 of 2' cluster "$tiny" --as-calibrated --table "$work/host.h5" \
  --jobs 2 --fabric 2:1 --steps 4 --warm-up 1

# Killed while ranks train: no process, no network, no file is left.
interfaces() { ls /sys/class/net; }
before=$(interfaces)
"$program" cluster "$tiny" --as-calibrated --table "$work/host.h5" --compute waits --steps 10000000 \
  --warm-up 1 >/dev/null 2>&1 &
victim=$!
all_came() {
  family=$(family_of $victim)
  [ "$(echo "$family" | wc -w)" -ge 6 ] # two before the first, two launchers, two ranks
}
wait_until all_came || fail "no ranks came up: $family"
kill -9 $victim
wait $victim 2>/dev/null
# shellcheck disable=SC2086  # numbers
wait_until ended $family || fail "one of these processes is left: $family"
none_new() { [ "$(interfaces)" = "$before" ]; }
wait_until none_new || fail "network devices are left: $(interfaces)"
[ -z "$(ls -A "$TMPDIR")" ] || fail "files are left: $(ls -A "$TMPDIR")"
exit $((failures > 0))
