#!/bin/sh
# Every bad input ends with one message that names its place, the right exit code, and no result.
#   bad_input.sh FOLDER_OF_PROGRAMS SOURCE
set -u
stepcast=$1/stepcast
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# expect CODE PATTERN COMMAND...: the exit code, a pattern in standard error, nothing on standard output.
expect() {
  code=$1 pattern=$2
  shift 2
  "$@" >"$work/stdout" 2>"$work/stderr"
  got=$?
  if [ "$got" -ne "$code" ] || ! grep -q -- "$pattern" "$work/stderr" || [ -s "$work/stdout" ]; then
    echo "FAILED: $*"
    echo "  wanted exit code $code and '$pattern', got $got and:"
    sed 's/^/  /' "$work/stderr" "$work/stdout"
    failed=1
  fi
}

scenario() {
  cat >"$work/$1.toml" <<END
[model]
name = "llama2-7b"
[cluster]
node = "dgx-h100"
nodes = 2
[plan]
data = "zero2"
[batch]
local = 1
END
}

# with NAME SED: a good scenario with one line changed
with() {
  scenario "$1"
  sed -i "$2" "$work/$1.toml"
}

expect 2 "usage: stepcast" "$stepcast"
expect 2 "unknown command 'rnu', did you mean 'run'?" "$stepcast" rnu
expect 2 "which scenario" "$stepcast" run
expect 2 "unknown option '--ndoes', did you mean '--nodes'?" "$stepcast" run --ndoes 4
expect 2 "unknown option '--nod'" "$stepcast" run --nod 4
expect 2 "needs a value" "$stepcast" run --nodes
expect 2 "did you mean 'mfu'?" "$stepcast" explain mfuu
expect 2 "did you mean 'gpus'?" "$stepcast" show gpsu
expect 2 "which collective" "$stepcast" collective --gpu h100
expect 3 "cannot be 'all_reduec', did you mean 'all_reduce'?" \
  "$stepcast" collective all_reduec --gpu h100 --bytes 1MiB
expect 3 "'bytes' in \[collective\] needs a unit" \
  "$stepcast" collective all_reduce --gpu h100 --bytes 64
expect 3 "unknown GPU 'h10', did you mean 'h100'?" \
  "$stepcast" run --model llama2-7b --gpu h10 --local-batch 1
expect 3 "'data' in \[plan\] is 'fsdp', write zero3, .* or zero2" \
  "$stepcast" run --model llama2-7b --gpu h100 --local-batch 1 --data fsdp
expect 3 "'global' in \[batch\] is \"1k\", write the number out: k may be 1000 or 1024" \
  "$stepcast" run --model llama2-7b --gpu h100 --global-batch 1k
expect 3 "README.md' is no model of the catalogue and no .toml, a model's file is TOML" \
  "$stepcast" run --model "$2/README.md" --gpu h100 --local-batch 1
expect 3 "unknown model 'llama2-8b', did you mean" \
  "$stepcast" run --model llama2-8b --gpu h100 --local-batch 1
expect 3 "absent.toml: cannot be opened" "$stepcast" run "$work/absent.toml"
expect 3 "is a folder" "$stepcast" run "$work"

with unknown 's/^nodes = 2/ndoes = 2/'
expect 3 "unknown.toml:5: unknown key 'ndoes' in \[cluster\], did you mean 'nodes'?" \
  "$stepcast" run "$work/unknown.toml"
with missing '/^node = /d'
expect 3 "missing.toml:3: missing key 'node' in \[cluster\]" "$stepcast" run "$work/missing.toml"
with duplicate 's/^nodes = 2/nodes = 2\nnodes = 4/'
expect 3 "duplicate.toml:6: duplicate key 'nodes'" "$stepcast" run "$work/duplicate.toml"
with unit 's/^node = .*/node = {name = "dgx-h100", nic = 400}/'
expect 3 "unit.toml:4: 'nic' in \[cluster.node\] needs a unit" "$stepcast" run "$work/unit.toml"
with wrong_unit 's/^node = .*/node = {name = "dgx-h100", nic = "400 ms"}/'
expect 3 "wrong_unit.toml:4" "$stepcast" run "$work/wrong_unit.toml"
with negative 's/^nodes = 2/nodes = -2/'
expect 3 "negative.toml:5: 'nodes' in \[cluster\] must be at least 1" "$stepcast" run "$work/negative.toml"
with zero 's/^local = 1/local = 0/'
expect 3 "zero.toml:9" "$stepcast" run "$work/zero.toml"
with degrees 's/^data = .*/tensor = 3/'
expect 3 "degrees.toml:7: tensor 3 x pipeline 1 does not divide the 16 GPUs" \
  "$stepcast" run "$work/degrees.toml"
with heads 's/^data = .*/tensor = 64/; s/^nodes = 2/nodes = 8/'
expect 3 "heads.toml:7" "$stepcast" run "$work/heads.toml"
with batch 's/^local = 1/global = 15/'
expect 3 "batch.toml:9: a global batch of 15 sequences does not divide over 16 replicas" \
  "$stepcast" run "$work/batch.toml"
with overflow 's/^nodes = 2/nodes = 99999999999999999999/'
expect 3 "overflow.toml:5" "$stepcast" run "$work/overflow.toml"
with large 's/^nodes = 2/nodes = 9000000000000000000/'
expect 3 "large.toml:5" "$stepcast" run "$work/large.toml"
with empty_sweep '$a [sweep]\n"cluster.nodes" = []'
expect 3 "empty_sweep.toml:11: .*zero points" "$stepcast" run "$work/empty_sweep.toml"
scenario single
expect 3 "has no \[sweep\]" "$stepcast" sweep "$work/single.toml"
expect 3 "'nodes' in \[cluster\] must be at least 1" "$stepcast" run "$work/single.toml" --set cluster.nodes=0
expect 3 "unknown key 'ndoes'" "$stepcast" run "$work/single.toml" --set cluster.ndoes=1

{ printf 'a = '; printf '[%.0s' $(seq 200); } >"$work/deep.toml"
expect 3 "deep.toml:1: nested deeper than 32 levels" "$stepcast" run "$work/deep.toml"
truncate -s 100M "$work/huge.toml"
expect 3 "huge.toml: larger than 4 MiB" "$stepcast" run "$work/huge.toml"

# Calibration files
echo "no HDF5" >"$work/text.h5"
expect 3 "text.h5" "$stepcast" run "$work/single.toml" --set "calibration.tables=[\"$work/text.h5\"]"
head -c 5000 "$1/published.h5" >"$work/short.h5"
expect 3 "short.h5" "$stepcast" run "$work/single.toml" --set "calibration.tables=[\"$work/short.h5\"]"
expect 3 "absent.h5" "$stepcast" run "$work/single.toml" --set "calibration.tables=[\"$work/absent.h5\"]"

# An output folder that cannot be written, before anything is computed
: >"$work/file"
expect 7 "^--out: " "$stepcast" run "$work/single.toml" --out "$work/file/out"

# With --json the error is an object on standard output as well.
"$stepcast" run "$work/unknown.toml" --json >"$work/stdout" 2>/dev/null
[ $? -eq 3 ] && grep -q '"message": "unknown key' "$work/stdout" || { echo "FAILED: JSON error"; failed=1; }

# A plan that does not fit: exit code 4, the parts named, and --ignore-memory goes on.
"$stepcast" run --model llama2-70b --gpu h100 --nodes 1 --data ddp --local-batch 1 >"$work/stdout" 2>&1
[ $? -eq 4 ] && grep -q "refused .*optimizer" "$work/stdout" || { echo "FAILED: refusal"; cat "$work/stdout"; failed=1; }
"$stepcast" run --model llama2-70b --gpu h100 --nodes 1 --data ddp --local-batch 1 --ignore-memory \
  >"$work/stdout" 2>&1 || { echo "FAILED: --ignore-memory"; cat "$work/stdout"; failed=1; }

exit $failed
