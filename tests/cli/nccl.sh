#!/bin/sh
# NCCL's own variables, from the command line and from a scenario: what they change, and how each
# mistake ends with its place and exit code 3.
#   nccl.sh FOLDER_OF_PROGRAMS SOURCE
set -u
stepcast=$1/stepcast
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
  echo "FAILED: $1"
  failed=1
}

# runs PATTERN OPTION...: an AllReduce of 1 GiB on 4 nodes, what NCCL runs it with.
runs() {
  pattern=$1
  shift
  out=$("$stepcast" collective all_reduce --gpu h100 --nodes 4 --bytes 64MiB "$@" 2>&1)
  echo "$out" | grep -q -- "$pattern" || fail "$* gives no '$pattern': $out"
}

# refuses PATTERN OPTION...: exit code 3, the pattern in standard error.
refuses() {
  pattern=$1
  shift
  "$stepcast" collective all_reduce --gpu h100 --nodes 4 --bytes 64MiB "$@" >"$work/out" 2>"$work/err"
  got=$?
  if [ "$got" -ne 3 ] || ! grep -q -- "$pattern" "$work/err" || [ -s "$work/out" ]; then
    fail "$*: exit $got, wanted 3 and '$pattern': $(cat "$work/err")"
  fi
}

runs 'nvls_tree, simple'
runs 'ring, ' --nccl-env NCCL_ALGO=Ring
runs 'ring, simple, 8 channels' --nccl-env NCCL_ALGO=ring --nccl-env NCCL_PROTO=Simple \
  --nccl-env NCCL_MAX_CTAS=8
runs 'tree, ' --nccl 2.28 --nccl-env 'NCCL_ALGO=allreduce:tree'
runs 'warning.*no SHARP' --nccl-env NCCL_COLLNET_ENABLE=1
runs 'warning.*NCCL_COLLNET_ENABLE=1' --set cluster.fabric.sharp=true \
  --set cluster.fabric.name=rail-optimized
runs 'nvls, simple' --set cluster.fabric.sharp=true --set cluster.fabric.name=rail-optimized \
  --nccl-env NCCL_COLLNET_ENABLE=1

refuses "did you mean 'NCCL_ALGO'" --nccl-env NCCL_ALOG=Ring
refuses "did you mean 'Ring'" --nccl-env NCCL_ALGO=Rign
refuses 'since 2.24' --nccl-env NCCL_ALGO=allreduce:tree
refuses 'leave no algorithm for all_reduce' --nccl 2.28 --nccl-env NCCL_ALGO=PAT
refuses 'NCCL_IB_HCA changes nothing' --nccl-env NCCL_IB_HCA=mlx5

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
"$stepcast" run "$work/good.toml" | grep -q 'ring, .*4 channels' || fail "[nccl] of a scenario"
sed 's/"Ring"/"Rnig"/' "$work/good.toml" >"$work/bad.toml"
"$stepcast" run "$work/bad.toml" >"$work/out" 2>"$work/err"
[ $? -eq 3 ] && grep -q "bad.toml:5: NCCL_ALGO knows no 'Rnig'" "$work/err" ||
  fail "a bad value names its line: $(cat "$work/err")"
"$stepcast" collective all_reduce --gpu h100 --bytes 1MiB --nccl-env NCCL_ALGO 2>"$work/err"
[ $? -eq 2 ] || fail "--nccl-env without a value is a usage error"

exit $failed
