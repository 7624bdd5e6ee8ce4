# A user's own cluster: logs and topologies in, predictions out, as a user calls it.
# Usage: import.sh FOLDER_OF_PROGRAMS SOURCE_FOLDER
set -u
program=$1/stepcast-calibrate
fixtures=$2/tests/calibrate/fixtures
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"

# A log becomes a measured curve.
log=$fixtures/all_gather_h100_2x8.log
expect 3 'all_gather_h100_2x8.log:3: .*--fabric infiniband' import "$log" --out "$work/mine.h5"
expect 3 'give --node-bandwidth' import "$log" --fabric infiniband --out "$work/mine.h5"
expect 3 'did you mean .infiniband' import "$log" --fabric infinband --out "$work/mine.h5"
expect 0 '12 rows of allgather, 16 ranks on 2 nodes of H100-SXM5-80GB, infiniband, NCCL 2.20.5' \
  import "$log" --fabric infiniband --node-bandwidth '3200 Gbit/s' --out "$work/mine.h5"
expect 0 'all_gather_h100_2x8.log' show "$work/mine.h5"
expect 0 'ignored the environment of the process, which may hold secrets' \
  import "$fixtures/reduce_scatter_h100_8.json" --out "$work/json.h5"
expect 2 "--ranks 0. is no such number, give a whole number, at least 1" import "$log" --ranks 0 --out "$work/mine.h5"
expect 3 'is no log that is understood' import "$2/README.md" --out "$work/none.h5"
head -c 2000 "$fixtures/reduce_scatter_h100_8.json" >"$work/cut.json"
expect 3 'cut.json:[0-9]*: is not JSON' import "$work/cut.json" --out "$work/none.h5"
head -n 25 "$log" >"$work/cut.log"
expect 3 'cut.log:25: .*was the log cut' import "$work/cut.log" --out "$work/none.h5"
[ ! -e "$work/none.h5" ] || { echo "a refused log left a table"; failures=$((failures + 1)); }

# Tables as they are pasted: the head is gone, its facts come from options; ranks from the rows.
sed -n '/#       size/,$p' "$log" | sed 's/^/> /' >"$work/pasted.log"
expect 3 'does not say which GPU' import "$work/pasted.log" --nodes 2 --collective all_gather \
  --fabric infiniband --node-bandwidth '3200 Gbit/s' --out "$work/none.h5"
expect 0 '12 rows of allgather, 16 ranks on 2 nodes of H100, infiniband' import "$work/pasted.log" \
  --nodes 2 --collective all_gather --gpu h100 --fabric infiniband \
  --node-bandwidth '3200 Gbit/s' --out "$work/pasted.h5"
expect 3 'busbw are those of 16 ranks' import "$work/pasted.log" --nodes 2 --ranks 32 \
  --collective all_gather --gpu h100 --fabric infiniband --node-bandwidth '3200 Gbit/s' \
  --out "$work/none.h5"
# NCCL's start alone holds facts, and nothing for a table.
expect 0 'NCCL 2.21.5, 16 ranks on 2 nodes, 8 NICs of roce, 400 GB/s in all, 16 channels' \
  import "$fixtures/nccl-info-2x8.log"
expect 3 'holds no figure that a table could take' import "$fixtures/nccl-info-2x8.log" \
  --out "$work/none.h5"
[ ! -e "$work/none.h5" ] || { echo "a log without figures left a table"; failures=$((failures + 1)); }

# It is what the prediction rests on, alone and against what is published.
program=$1/stepcast
for tables in "\"$work/mine.h5\"" "\"published\", \"$work/mine.h5\""; do
  expect 0 'rests on .*all_gather_h100_2x8.log' collective all_gather --gpu h100 --nodes 2 \
    --bytes 64MiB --explain --set "calibration.tables=[$tables]"
  expect 0 'provenance *measured' collective all_gather --gpu h100 --nodes 2 --bytes 64MiB \
    --set "calibration.tables=[$tables]"
done

# NCCL's own figures.
program=$1/stepcast-calibrate
nccl=$fixtures/nccl-2.20-2x8.log
expect 3 'nccl-2.20-2x8.log:7: .*--gpu' import "$nccl" --out "$work/nccl.h5"
expect 0 '19 figures of NCCL.s tuning table, 5 choices' \
  import "$nccl" --gpu h100 --out "$work/nccl.h5"
expect 0 'nvls_tree' show "$work/nccl.h5"
expect 0 'NCCL 2.20.5, 16 ranks on 2 nodes; ours: dgx-h100' tuning "$work/nccl.h5"
expect 0 'choices agree' tuning "$nccl" --gpu h100
expect 0 'ours: dgx-h200' tuning "$nccl" --gpu h100 --node dgx-h200
expect 3 'holds neither' tuning "$work/mine.h5"

# A topology becomes a node.
expect 2 'import-node needs' import-node "$fixtures/dgx-a100.xml"
expect 0 'ignored a NIC that shares no PCIe switch' \
  import-node "$fixtures/dgx-a100.xml" --name my-a100 --out "$work/my-a100.toml"
expect 0 'kind = "hybrid_cube_mesh"' \
  import-node "$fixtures/dgx-1v.topo" --name mesh --gpu v100-sxm2-32gb
expect 3 'dgx-h100.topo:1: .*--gpu' import-node "$fixtures/dgx-h100.topo" --name x
expect 3 'is no topology that is understood' import-node "$log" --name x
expect 7 'cannot be written' \
  import-node "$fixtures/dgx-a100.xml" --name x --out "$work/nowhere/x.toml"

program=$1/stepcast
time_of() { "$program" collective all_reduce --node "$1" --nodes 4 --bytes 1GiB --json | grep time_us; }
mine=$(time_of "$work/my-a100.toml")
if [ -z "$mine" ] || [ "$mine" != "$(time_of dgx-a100)" ]; then
  echo "the imported DGX A100 is not the catalogue's: $mine"
  failures=$((failures + 1))
fi
expect 0 'tokens/s' run --model llama2-7b --node "$work/my-a100.toml" --nodes 2 --data zero2 \
  --local-batch 2
exit $((failures > 0))
