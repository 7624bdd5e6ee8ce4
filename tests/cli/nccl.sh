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

[ "$failures" -eq 0 ]
