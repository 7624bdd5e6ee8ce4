#!/bin/sh
# The command as a user calls it: results, files, the same answer by every way.
#   run.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
stepcast=$1/stepcast
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/cli/shared/patience.sh
. "$2/tests/cli/shared/patience.sh"
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"

"$stepcast" --version | grep -q "^stepcast [0-9]"
for verb in run sweep collective show explain; do
  "$stepcast" "$verb" --help | grep -q "^usage: stepcast $verb"
done
"$stepcast" show gpus | grep -q "h100-sxm5-80gb"
"$stepcast" show models | grep -q "llama2-7b"
"$stepcast" show clusters | grep -q "rail-optimized"
"$stepcast" show software | grep -q '^megatron-core .*"0.7"'
"$stepcast" show nodes | grep -q '^dgx-h100 .*8 x h100-sxm5-80gb'
"$stepcast" show fabrics | grep -q '^rail-optimized'
"$stepcast" show nccl | grep -q '^2.24 '
# One entry: every value with its source; a name that is not there is told, with the nearest.
"$stepcast" show gpus h100-sxm5-80gb | grep -q '^tensor_peak  *"989.4 TFLOP/s"  *[A-Za-z]'
"$stepcast" show nccl 2.24 | grep -q '^latency.ring.base  *\[6.6, 14'
"$stepcast" show clusters fat-tree | grep -q '^kind '
status=0
"$stepcast" show models llama2-7c 2>"$work/unknown" || status=$?
[ "$status" -eq 3 ] && grep -q "did you mean 'llama2-7b'" "$work/unknown"
"$stepcast" show cluster --gpu h100 --nodes 4 --graphviz "$work/cluster.dot" | grep -q .
grep -q "graph" "$work/cluster.dot"
"$stepcast" show calibration | grep -q "gemm"
"$stepcast" explain mfu | grep -q "formula"
"$stepcast" collective all_reduce --gpu h100 --nodes 4 --bytes 64MiB --nccl 2.20 --json |
  grep -q '"busbw_gb_per_s"'

# Options, a file, and the resolved file of a run give the same numbers.
"$stepcast" run --model llama2-7b --gpu h100 --nodes 2 --data zero2 --tensor 1 --pipeline 1 \
  --local-batch 2 --sequence 4096 --json --out "$work/out" >"$work/options.json"
cat >"$work/file.toml" <<END
[model]
name = "llama2-7b"
[cluster]
node = "dgx-h100"
nodes = 2
[batch]
local = 2
END
"$stepcast" run "$work/file.toml" --json >"$work/file.json"
"$stepcast" run "$work/out/scenario.toml" --json >"$work/resolved.json"
cmp "$work/options.json" "$work/file.json"
cmp "$work/options.json" "$work/resolved.json"
cmp "$work/options.json" "$work/out/results.json"

# A length that nobody gave is said, on standard error; kinds of communication that are not there
# are not; the report keeps to 100 columns, but for commands to copy.
short="--model llama3-8b --gpu h100 --nodes 1 --data zero3 --local-batch 1"
# shellcheck disable=SC2086 # several words
{
  "$stepcast" run $short >"$work/said" 2>"$work/noted"
  grep -q '4,096 tokens are assumed (--sequence)' "$work/noted"
  grep '^  exposed comm' "$work/said" | grep -q 'data' || { cat "$work/said"; exit 1; }
  ! grep '^  exposed comm' "$work/said" | grep -q '0 ps' || { cat "$work/said"; exit 1; }
  ! grep -v 'stepcast ' "$work/said" | grep -E '.{101}' || exit 1
  "$stepcast" run $short --sequence 8k 2>&1 >"$work/said" | grep -q 'assumed' && exit 1
}

# A sweep on one thread and on several prints the same; standard output has nothing else.
"$stepcast" sweep "$source/scenarios/weak_scaling.toml" --json --quiet \
  --set 'sweep.cluster.nodes=[1, 2, 4]' --out "$work/sweep" >"$work/sweep.json"
"$stepcast" sweep "$source/scenarios/weak_scaling.toml" --json --threads 1 \
  --set 'sweep.cluster.nodes=[1, 2, 4]' >"$work/one_thread.json"
cmp "$work/sweep.json" "$work/one_thread.json"
[ "$(ls "$work/sweep/points" | wc -l)" -eq 3 ]
"$stepcast" sweep "$work/sweep/scenario.toml" --json >"$work/again.json"
cmp "$work/sweep.json" "$work/again.json"

# The HDF5 file reads with h5py: columns of equal length, with units.
if python_with h5py; then
  "$python" - "$work/sweep/results.h5" <<'END'
import sys, h5py
points = h5py.File(sys.argv[1])["points"]
assert list(points["sweep.cluster.nodes"][()]) == [1, 2, 4]
unit = points["step_time_s"].attrs["unit"]
assert (unit.decode() if isinstance(unit, bytes) else unit) == "s"
assert all(len(points[name]) == 3 for name in points)
assert all(points["step_time_s"][()] > 0)
END
fi

# Interrupted when a point is kept: what is finished is printed, exit code 130; 0 where all was.
"$stepcast" sweep "$source/scenarios/model_parallel_2048.toml" --json --threads 1 \
  --out "$work/cut" >"$work/interrupted.json" 2>/dev/null &
pid=$!
wait_until [ -s "$work/cut/results.jsonl" ]
kill -INT $pid 2>/dev/null || true
code=0
wait $pid || code=$?
[ $code -eq 130 ] || [ $code -eq 0 ]
grep -q '"points"' "$work/interrupted.json"
