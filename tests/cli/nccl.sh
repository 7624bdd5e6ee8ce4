#!/bin/sh
# NCCL's own variables, from the command line and from a scenario: what they change, and how each
# mistake ends with its place and exit code 3.
#   nccl.sh FOLDER_OF_PROGRAMS SOURCE
set -u
program=$1/stepcast
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"

# all_reduce CODE PATTERN OPTION...: of 64 MiB on 4 nodes
all_reduce() {
  code=$1 pattern=$2
  shift 2
  expect "$code" "$pattern" collective all_reduce --gpu h100 --nodes 4 --bytes 64MiB "$@"
}
on_sharp="--set cluster.fabric.name=rail-optimized --set cluster.fabric.sharp=true"

all_reduce 0 'nvls_tree, simple'
all_reduce 0 'ring, ' --nccl-env NCCL_ALGO=Ring
all_reduce 0 'ring, simple, 8 channels' --nccl-env NCCL_ALGO=ring --nccl-env NCCL_PROTO=Simple \
  --nccl-env NCCL_MAX_CTAS=8
all_reduce 0 'tree, ' --nccl 2.28 --nccl-env 'NCCL_ALGO=allreduce:tree'
all_reduce 0 'warning.*no SHARP' --nccl-env NCCL_COLLNET_ENABLE=1
# shellcheck disable=SC2086  # several words
all_reduce 0 'warning.*only with NCCL_COLLNET_ENABLE=1' $on_sharp
# shellcheck disable=SC2086
all_reduce 0 'nvls, simple' $on_sharp --nccl-env NCCL_COLLNET_ENABLE=1
expect 0 'copy_engine, simple, 0 channels' collective all_gather --gpu h100 --bytes 64MiB \
  --nccl 2.28.3 --nccl-env NCCL_CTA_POLICY=ZERO

all_reduce 3 "did you mean 'NCCL_ALGO'" --nccl-env NCCL_ALOG=Ring
all_reduce 3 "did you mean 'Ring'" --nccl-env NCCL_ALGO=Rign
all_reduce 3 'since 2.24' --nccl-env NCCL_ALGO=allreduce:tree
all_reduce 3 'leave no algorithm for all_reduce' --nccl 2.28 --nccl-env NCCL_ALGO=PAT
all_reduce 3 'NCCL_IB_HCA changes nothing' --nccl-env NCCL_IB_HCA=mlx5
all_reduce 2 'sets no variable' --nccl-env NCCL_ALGO

cat >"$work/good.toml" <<END
[cluster]
node = "dgx-h100"
nodes = 4
[nccl]
NCCL_ALGO = "Ring"
NCCL_MAX_CTAS = 4
[collective]
kind = "all_gather"
bytes = "1 GiB"
END
sed 's/"Ring"/"Rnig"/' "$work/good.toml" >"$work/bad.toml"
expect 0 'ring, .*4 channels' run "$work/good.toml"
expect 3 "bad.toml:5: NCCL_ALGO knows no 'Rnig'" run "$work/bad.toml"

# Where NCCL's own choice makes the step longer, the report says so: with the variable that it names
# the step takes what it promises, and nothing is left to say.
step="run --gpu h100 --nodes 32 --model gpt-22b --data zero3 --local-batch 1 --sequence 1024"
# shellcheck disable=SC2086  # several words
"$program" $step >"$work/choice.txt" 2>&1
said="NCCL's own choice costs [0-9]* %: .* as it chooses (.*), \(.*\) with NCCL_PROTO=\"\(.*\)\";.*"
promised=$(sed -n "s/.*$said/\1/p" "$work/choice.txt")
protocol=$(sed -n "s/.*$said/\2/p" "$work/choice.txt")
[ -n "$promised" ] || { echo "no warning of NCCL's choice"; cat "$work/choice.txt"; failures=1; }
# shellcheck disable=SC2086
expect 0 "^step time  *$promised" $step --nccl-env "NCCL_PROTO=$protocol"
# shellcheck disable=SC2086
if "$program" $step --nccl-env "NCCL_PROTO=$protocol" | grep "own choice"; then failures=1; fi
# Measured curves give H100's times, and no model is set beside them.
if "$program" run --gpu h100 --nodes 2 --model gpt-22b --data zero3 --local-batch 1 \
  --sequence 2048 | grep "own choice"; then failures=1; fi

[ "$failures" -eq 0 ]
