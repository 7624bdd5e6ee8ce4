#!/bin/sh
# What is out of range, over the budget or no regular file is answered with its place and exit code
# 3, at once: nothing that is accepted ends in exit code 1.
#   bounds.sh FOLDER_OF_PROGRAMS SOURCE
set -u
programs=$1
program=$1/stepcast
. "$2/tests/cli/shared/expect.sh"

cat >"$work/good.toml" <<TOML
[model]
name = "llama2-1b"
sequence = 512
[cluster]
nodes = 2
[cluster.node]
name = "dgx-h100"
[cluster.node.gpu]
name = "h100"
[cluster.fabric]
name = "rail-optimized"
[plan]
data = "zero1"
[batch]
local = 1
[software]
framework = "megatron-core"
TOML
sed -i 's/^name = "h100"/name = "h100-sxm5-80gb"/' "$work/good.toml"
expect 0 'step' run "$work/good.toml"

# refuses TABLE LINE PATTERN: a line more under [TABLE] is refused where it stands
refuses() {
  sed "s|^\[$1\]|&\n$2|" "$work/good.toml" >"$work/bad.toml"
  [ "$1" != model ] || sed -i '/^sequence = 512/d' "$work/bad.toml"
  line=$(grep -nF "$2" "$work/bad.toml" | head -1 | cut -d: -f1)
  expect 3 "bad.toml:$line: .*$3" run "$work/bad.toml"
}

# Ranges, beside the keys
node=cluster.node gpu=cluster.node.gpu fabric=cluster.fabric
while IFS='~' read -r table line pattern; do
  [ -z "$table" ] || refuses "$table" "$line" "$pattern"
done <<ROWS
$node~nic = "1 B/s"~'nic' in \[cluster.node\] is below what there is: 1.* B/s, 1.* MB/s to
$node~nic = "1e17 GB/s"~'nic' .* is above
$node~pcie = "1 B/s"~'pcie' .* is below
$node~socket = "1 B/s"~'socket' .* is below
$node~host_link = "1 B/s"~'host_link' .* is below
$node~nic_latency = "1000 s"~'nic_latency' .* is above what there is: .* to 1.* s
$node~nvlink_latency = "100000 s"~'nvlink_latency' .* is above
$node~gpus = 1000~'gpus' .* is above what there is: .* to 576
$gpu~nvlink = "1 B/s"~'nvlink' .* is below
$gpu~tensor_peak = "1 FLOP/s"~'tensor_peak' .* is below
$gpu~tensor_peak = "1e17 PFLOP/s"~'tensor_peak' .* is above
$gpu~fp32_peak = "1 FLOP/s"~'fp32_peak' .* is below
$gpu~memory_bandwidth = "1 B/s"~'memory_bandwidth' .* is below
$gpu~sms = 1000000~'sms' .* is above
$gpu~nvlink_links = 1000000000~'nvlink_links' .* is above
$gpu~idle = "5 MW"~'idle' .* is above
$gpu~idle = "1000 W"~an idle card draws .*, a full one 700 W
$gpu~tdp = "1e18 W"~'tdp' .* is above
$fabric~link = "1 B/s"~'link' .* is below
$fabric~switch_latency = "100000 s"~'switch_latency' .* is above
model~sequence = 100000000~'sequence' .* is above
model~layers = 100000~'layers' .* is above
cluster~nccl = "9.99"~NCCL 9.99 is newer than the newest known, known up to 2
software~launch_kernel = "1000000 s"~'launch_kernel' .* is above
software~ddp_bucket_bytes = "1 B"~'ddp_bucket_bytes' .* is below
ROWS
expect 3 "nvlink_per_link must be above zero" run "$work/good.toml" \
  --set 'cluster.node.gpu.nvlink="0 B/s"'
expect 3 "'compute' in \[precision\] must be a string" run "$work/good.toml" \
  --set precision.compute=nan

# A whole run and its failures
while IFS='~' read -r set pattern; do
  [ -z "$set" ] || expect 3 "--set ${set%%=*}.*: .*$pattern" run "$work/good.toml" --set "$set"
done <<ROWS
run_goal.tokens=0~'tokens' in \[run_goal\] is zero: nothing is trained
run_goal.tokens="1e40"~'tokens' .* is above what there is
run_goal.days=1e9~'days' .* is above
failures.per_1000_node_days=1e9~'per_1000_node_days' .* is above
failures.flap.per_1000_node_days=1e9~'per_1000_node_days' .* is above
failures.restart="1440 h"~'restart' .* is above
failures.checkpoint=[{every="1 ns"}]~'every' .* is below
ROWS
expect 3 "failures of all simulated runs are more than the budget of .*, --no-limit" \
  run "$work/good.toml" --set failures.per_1000_node_days=1e6 --set failures.days=3000

# Times that the clock cannot hold, each part within its range
expect 3 'good.toml.*: .*more than .* days, is a rate far too low' run "$work/good.toml" \
  --ignore-memory --set 'cluster.node.gpu.tensor_peak="1 GFLOP/s"' --sequence 1000000 \
  --set model.layers=2000

# The budget: one sentence, and --no-limit goes on
over='are more than the budget of .*, --no-limit (run.no_limit) goes on all the same'
expect 3 "micro-batches $over" run "$work/good.toml" --local-batch 200000 --micro-batch 1
expect 3 "calls of all ranks and steps $over" run "$work/good.toml" \
  --nodes 8 --set noise.kernel_sigma=0.01 --set noise.steps=100000
seq -s, 1 2000 >"$work/numbers"
expect 3 "bounds.toml\|--set.*: .* points of a sweep $over" run "$work/good.toml" \
  --set "sweep.batch.local=[$(cat "$work/numbers")]" --set "sweep.run.seed=[$(cat "$work/numbers")]"
expect 0 'step' run "$work/good.toml" --local-batch 200000 --micro-batch 1 --no-limit

# A trace of one long string ends where its budget does, among the events and around them; one that
# unpacks to it before that
program=$programs/stepcast-validate
long() {
  printf '%s' "$1"
  head -c 70000000 /dev/zero | tr '\0' a
  printf '"}]}'
}
long '{"traceEvents":[{"ph":"X","name":"' >"$work/event.json"
long '{"deviceProperties":[{"name":"' >"$work/around.json"
expect 3 'event.json:byte 67[0-9]*: an event of more than 64.0 MiB' \
  trace "$work/event.json" --scenario "$work/good.toml"
expect 3 'around.json:byte 67[0-9]*: more than 64.0 MiB stand around the events' \
  trace "$work/around.json" --scenario "$work/good.toml"
gzip "$work/event.json"
expect 3 'event.json.gz: unpacks to more than 100 times its size' \
  trace "$work/event.json.gz" --scenario "$work/good.toml"
rm "$work/around.json"
program=$programs/stepcast

# Inputs that are no regular files end at once, without a writer on the other side
mkfifo "$work/pipe"
for input in "$work/pipe" /dev/zero /dev/null; do
  expect 3 "$input: is no regular file" run "$input"
  expect 3 "$input: is no regular file" run "$work/good.toml" \
    --set "calibration.tables=[\"$input\"]"
  expect 3 "$input: is no regular file" run "$work/good.toml" \
    --set "routing.counts=\"$input\""
done
expect 3 "is a folder" run "$work"
[ ! -r /proc/self/mem ] || expect 3 '/proc/self/mem: cannot be read' run /proc/self/mem

# Tables of measurements
program=$programs/stepcast-calibrate
head='gpu,kind,shape_or_bytes,dtype,value,unit,source,url_or_repo_path,confidence'
while IFS='~' read -r row pattern; do
  [ -z "$row" ] || {
    printf '%s\n%s,a,b,high\n' "$head" "$row" >"$work/rows.csv"
    expect 3 "rows.csv:2: .*$pattern" import "$work/rows.csv" --out "$work/out.h5"
  }
done <<ROWS
H100,gemm,m=4096;n=4096;k=4096,bf16,1e20,TFLOP/s~beyond any machine
H100,gemm,m=4096;n=4096;k=4096,bf16,1e-12,TFLOP/s~beyond any machine
H100,gemm,m=4096;n=4096;k=4096,nan,600,TFLOP/s~is no type of elements
ROWS

# A line of 200,000 elements is read once, not once for each
{
  printf '<system version="1">'
  seq 200000 | sed 's|.*|<cpu/>|' | tr -d '\n'
  printf '</system>'
} >"$work/topology.xml"
expect 3 "topology.xml:1: holds no GPU" import-node "$work/topology.xml" --name many --out "$work/many.toml"

exit $((failures > 0))
