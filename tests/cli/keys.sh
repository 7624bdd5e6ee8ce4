#!/bin/sh
# The keys of a scenario as a user meets them: options, show keys, suggestions, warnings, JSON.
#   keys.sh FOLDER_OF_PROGRAMS SOURCE
set -u
program=$1/stepcast
. "$2/tests/cli/shared/expect.sh"

small="run --model llama2-1b --sequence 512 --gpu h100 --nodes 1 --global-batch 8 --data zero1"

# Every key with its type, its default and what it means.
expect 0 '^plan.recompute_every *integer|best *1 ' show keys
expect 0 '^cluster.node.gpu.memory *"64 MiB"' show keys

# A key that is misspelt, or written without its table.
expect 3 "unknown key 'plna.tensor', did you mean 'plan.tensor'?" $small --set plna.tensor=2
expect 3 "unknown key 'tensr', did you mean 'plan.tensor'?" $small --set tensr=2
expect 3 "unknown key 'tensr' in \[plan\], did you mean 'tensor'?" $small --set plan.tensr=2

# --framework NAME[@VERSION]; the report says what was run with.
expect 0 '^framework *megatron-core 0.18' $small --framework megatron-core
expect 0 '"framework_version": "0.7"' $small --framework=megatron-core@0.7 --json
expect 3 "no data for megatron-core 9.9" $small --framework megatron-core@9.9
expect 3 "unknown framework 'megatron-cor', did you mean 'megatron-core'?" \
  $small --framework megatron-cor

# The version that a file states for its framework is not that of another.
cat >"$work/file.toml" <<END
[model]
name = "llama2-1b"
sequence = 512
[cluster]
node = "dgx-h100"
[batch]
global = 16
[software]
framework = "pytorch-fsdp2"
version = "2.3"
[sweep]
"cluster.nodes" = [1, 2]
END
expect 0 '^megatron-core 0.18; NCCL 2.20' \
  sweep "$work/file.toml" --framework megatron-core --nccl 2.20 --data zero1
expect 0 '^pytorch-fsdp2 2.3; NCCL 2.20' sweep "$work/file.toml" --nccl 2.20

# B3: no key of the plan hides from the JSON.
for every in 1 2; do
  expect 0 "\"recompute_every\": $every" \
    $small --recompute full --set plan.recompute_every=$every --json
done

# A key without effect is named, in a run and in a sweep; one that says the default is not.
expect 0 'warning  *plan.schedule has no effect here: there is one pipeline stage' \
  $small --schedule gpipe
expect 0 'warning: plan.schedule has no effect here: .* (2 points)' \
  sweep "$work/file.toml" --schedule gpipe
expect 0 '"warnings": \[\]' $small --schedule 1f1b --json

# Parts of a machine that move no time, or only where something shares them.
collective="run --json $work/collective.toml"
cat >"$work/collective.toml" <<END
[collective]
kind = "all_reduce"
bytes = "64 MiB"
[cluster]
node = "dgx-a100"
nodes = 6
[cluster.fabric]
name = "rail-optimized"
END
expect 0 'pcie_switches has no effect: every GPU has a NIC at its own switch' \
  $collective --set cluster.node.pcie_switches=8
expect 0 'sockets says which GPUs and NICs share a CPU socket' \
  $collective --set 'cluster.node="pcie4-8"' --set cluster.node.sockets=1
expect 0 'tiers has no effect: as many as it takes anyway' $collective --set cluster.fabric.tiers=2
expect 0 'tiers makes the fabric taller than it must be' $collective --set cluster.fabric.tiers=3
expect 0 "cluster.nccl moves no collective's time here: measured curves" \
  $collective --set cluster.nodes=1 --nccl 2.18.1
expect 3 'node pcie4-8: NCCL has no channel slower than .* GB/s' \
  $collective --set 'cluster.node="pcie4-8"' --set 'cluster.node.socket="1 GB/s"'

# show X NAME: what the file does not write is marked as a default.
expect 0 '^ecmp_seed *1 *default$' show fabrics rail-optimized
expect 0 '^objective *"next_token" *default$' show models llama2-7b
expect 0 '^collectives_hold_core *false *default$' show software pytorch-fsdp2
expect 0 '^since megatron-core-0.12 ' show software megatron-core-0.13
expect 0 '^as nemo-26.02$\|^since nemo-26.02 ' show software nemo-26.04
expect 0 '^max_power .* default$' show nodes pcie4-8
expect 0 '^nccl_since *- *default$' show gpus v100-sxm2-16gb

# Every metric with its unit, for who reads our files.
expect 0 '^step_time_s  *s  *step$' show metrics
expect 0 '^memory_gib_per_gpu,GiB,memory$' show metrics --csv -

# A sweep of options alone; a version is a word, quoted as TOML would or not; an option that is not
# known is named without its value.
expect 0 '^ *2 ' sweep --model llama2-7b --gpu h100 --local-batch 1 --data zero2 \
  --set 'sweep.cluster.nodes=[1, 2]'
expect 0 'pytorch-fsdp2 2.3' run --model llama2-7b --gpu h100 --local-batch 1 --nodes 1 \
  --set 'software.framework="pytorch-fsdp2"' 'software.version="2.3"'
expect 2 "unknown option '--modle', did you mean '--model'" run --modle=llama2-7b

# A list of what is known names each once.
printf 'kind,qqqqqq\n' >"$work/rows.csv"
known_once() {
  "$@" >"$work/known" 2>&1 || true
  sed -n 's/.*known: //p' "$work/known" | tr -s ', ' '\n' | sort >"$work/words"
  [ -s "$work/words" ] || { echo "no list of the known: $*"; failures=$((failures + 1)); }
  [ -z "$(uniq -d "$work/words")" ] || { echo "twice: $*"; failures=$((failures + 1)); }
}
known_once "$1/stepcast" show qqqqqq
known_once "$1/stepcast" $small --framework qqqqqq
known_once "$1/stepcast" $small --framework pytorch-fsdp2@99
known_once "$1/stepcast" $small --set 'qqqqqq=1'
known_once "$1/stepcast" $small --set 'plan.qqqqqq=1'
known_once "$1/stepcast" $small --set 'software.attention="qqqqqq"'
known_once "$1/stepcast" show cluster --gpu qqqqqq
known_once "$1/stepcast" run --gpu h100 --model qqqqqq
known_once "$1/stepcast" show cluster --node qqqqqq
known_once "$1/stepcast" run "$work/collective.toml" --nccl-env QQQQQQ=1
known_once "$1/stepcast-calibrate" import "$work/rows.csv" --out "$work/rows.h5"

# A sweep shows all that "best" chose.
cat >"$work/best.toml" <<'END'
[model]
name = "llama2-7b"
[cluster]
node = "dgx-h100"
nodes = 2
[plan]
tensor = "best"
recompute = "best"
[batch]
micro_batch = 1
[sweep]
"batch.global" = [32, 64]
END
program=$1/stepcast
expect 0 '^global  tensor  pipeline  recompute  GPUs ' sweep "$work/best.toml"

# NVLink of a GPU's file counts where a node's file names it.
sed 's|^nvlink = .*|nvlink = "20 GB/s"|; s|^name = .*|name = "slow"|' \
  "$2/scenarios/gpus/h100-sxm5-80gb.toml" >"$work/slow.toml"
sed '/^nvlink_per_link/d; s|^gpu = .*|gpu = "slow.toml"|; s|^name = .*|name = "mine"|' \
  "$2/scenarios/nodes/dgx-h100.toml" >"$work/mine.toml"
expect 0 '^NVLink bandwidth  *20.0 GB/s' why --model llama2-1b --node "$work/mine.toml" --nodes 1 \
  --tensor 8 --local-batch 1
sed 's|^gpu = .*|gpu = "slow.toml"|' "$2/scenarios/nodes/dgx-h100.toml" >"$work/both.toml"
expect 3 'state one of them' run --model llama2-7b --node "$work/both.toml" --local-batch 1

# Many settings are read as few are, in order; more than there could be keys are refused at once.
many=$(yes -- --set=plan.tensor=1 | head -n 3000)
# shellcheck disable=SC2086
expect 0 'tensor 2 x' run --model llama2-7b --gpu h100 --nodes 1 --data zero2 --local-batch 1 $many \
  --set plan.tensor=2
many=$(yes -- --set=plan.tensor=1 | head -n 10001)
# shellcheck disable=SC2086
expect 2 '10001 settings by --set: more than 10000' run --model llama2-7b $many

exit $((failures > 0))
