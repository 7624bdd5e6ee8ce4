# A GPU is one file of the catalogue: with it the programs run, show, import and validate.
# Usage: new_gpu.sh FOLDER_OF_PROGRAMS SOURCE_FOLDER
set -u
programs=$1
program=$programs/stepcast
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"

# The catalogue with an invented GPU: its own generation, on Hopper's constants, in no node.
mkdir "$work/tree"
cp -R "$2/scenarios" "$work/tree/scenarios"
mkdir "$work/tree/validate"
cp "$2"/validate/*.toml "$work/tree/validate/"
cat >"$work/tree/scenarios/gpus/inv-sxm-120gb.toml" <<'END'
# An invented GPU
name = "inv-sxm-120gb"
aliases = ["inv"]
cuda_names = ["INV 120GB HBM4"]
pci_ids = ["0x9999"]
compute_capability = 97
generation = "invented"
architecture = "hopper"
sms = 140
tensor_peak = "1500 TFLOP/s"
tf32_peak = "750 TFLOP/s"
fp8_peak = "3000 TFLOP/s"
fp32_peak = "90 TFLOP/s"
memory = "120 GiB"
memory_bandwidth = "5000 GB/s"
nvlink = "450 GB/s"
nvlink_links = 18
tdp = "800 W"
idle = "80 W"

[sources]
sms = "invented"
END
export STEPCAST_DATA=$work/tree/scenarios

expect 0 'inv-sxm-120gb' show gpus
expect 0 'no node of the catalogue holds inv-sxm-120gb: it is put into' run --model llama2-7b \
  --gpu inv --nodes 2 --data zero2 --local-batch 2
expect 0 'tokens/s' run --model llama2-7b --gpu inv --nodes 2 --data zero2 --local-batch 2
expect 0 'provenance' collective all_reduce --gpu inv --nodes 2 --bytes 64MiB
expect 0 'inv-sxm-120gb' show cluster --gpu inv --nodes 2
expect 3 "unknown GPU 'inw'" run --model llama2-7b --gpu inw --local-batch 1

# One that lies elsewhere is named by its file. In the catalogue, a file and its GPU have one name.
sed 's/inv-sxm/own-sxm/; s/"inv"/"own"/; s/"INV/"OWN/; s/0x9999/0x9998/' \
  "$work/tree/scenarios/gpus/inv-sxm-120gb.toml" >"$work/own.toml"
expect 0 'x own-sxm-120gb (2 x ' run --model llama2-7b --gpu "$work/own.toml" --nodes 2 \
  --data zero2 --local-batch 2
cp "$work/own.toml" "$work/tree/scenarios/gpus/other.toml"
expect 3 "other.toml:2: 'name' is \"own-sxm-120gb\" in the file other.toml, call both the same" \
  run --model llama2-7b --gpu own --nodes 2 --data zero2 --local-batch 2
rm "$work/tree/scenarios/gpus/other.toml"

# Logs name it as CUDA does, or leave it to --gpu; its rows are its own, not another GPU's.
program=$programs/stepcast-calibrate
sed 's/NVIDIA H100 80GB HBM3/NVIDIA INV 120GB HBM4/' \
  "$2/tests/calibrate/fixtures/all_gather_h100_2x8.log" >"$work/inv.log"
expect 0 'nodes of INV-SXM-120GB, infiniband' import "$work/inv.log" --fabric infiniband \
  --node-bandwidth '3200 Gbit/s' --out "$work/collectives.h5"
expect 0 '19 figures' import "$2/tests/calibrate/fixtures/nccl-2.20-2x8.log" --gpu inv \
  --out "$work/nccl.h5"
sed 's/device="0x2330"/device="0x9999"/; s/sm="90"/sm="97"/' \
  "$2/tests/calibrate/fixtures/dgx-h100.xml" >"$work/inv.xml"
expect 0 'gpu = "inv-sxm-120gb"' import-node "$work/inv.xml" --name inv-node
expect 0 'gpu = "inv-sxm-120gb"' import-node "$2/tests/calibrate/fixtures/dgx-h100.topo" \
  --name inv-node --gpu inv
expect 3 'inv-sxm-120gb is given, .* shows h100-sxm5-80gb' import-node "$2/tests/calibrate/fixtures/dgx-h100.xml" \
  --name inv-node --gpu inv
columns=gpu,kind,shape_or_bytes,ranks,nodes,gpus_per_node,dtype,value,unit,source,url_or_repo_path
columns=$columns,confidence,fabric,inter_node_gbps_per_node
{
  echo "$columns"
  for n in 2048 4096 8192; do
    echo "INV-SXM-120GB,gemm,m=$n;n=$n;k=$n,1,1,1,bf16,900,TFLOP/s,a test,a test,high,,"
  done
} >"$work/gemm.csv"
{
  echo "$columns"
  for n in 1048576 67108864 1073741824; do
    echo "INV-SXM-120GB,allreduce,$n,16,2,8,fp32,200,GB/s busbw,a test,a test,high,infiniband,3200"
  done
} >"$work/collectives.csv"

# What was measured on it is what a step and validation rest on.
program=$programs/stepcast
expect 0 'provenance *measured' collective all_gather --gpu inv --nodes 2 --bytes 64MiB \
  --set "calibration.tables=[\"$work/collectives.h5\"]"
program=$programs/stepcast-validate
expect 0 'inv-sxm-120gb *gemm .* 3 ' kernels "$work/gemm.csv"
expect 0 '3 rows, 3 scored' collectives "$work/collectives.csv"
exit $((failures > 0))
