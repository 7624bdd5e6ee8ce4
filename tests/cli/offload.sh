#!/bin/sh
# Overlap of tensor ranks and offload to the host as a user meets them: less time, less memory,
# refusals by name.
#   offload.sh FOLDER_OF_PROGRAMS SOURCE
set -u
program=$1/stepcast
. "$2/tests/cli/shared/expect.sh"

# The first number of a key in JSON; of KEY.PART the first part after the key.
figure_of() {
  key=${1%.*} part=${1#*.}
  shift
  "$program" "$@" --json | awk -F'[:,]' -v key="\"$key\"" -v part="\"$part\"" '
    $1 ~ key { found = 1 }
    found && $1 ~ part { print $2; exit }'
}
# holds WHAT CONDITION
holds() {
  awk "BEGIN { exit !($2) }" || {
    echo "$1: $2"
    failures=$((failures + 1))
  }
}

# Tensor ranks: either overlap is faster than none, beyond what smaller products cost.
megatron="run --model llama2-13b --gpu h100 --nodes 2 --tensor 8 --sequence-parallel --data zero1 \
  --framework megatron-core --global-batch 32 --micro-batch 1"
serial=$(figure_of step_time_s $megatron)
buffers=$(figure_of step_time_s $megatron --tensor-overlap userbuffers)
holds "user buffers against none" "$buffers > 0 && $buffers < 1.02 * $serial"
exposed=$(figure_of exposed_communication_s.tensor $megatron) hidden=$(figure_of exposed_communication_s.tensor $megatron \
  --tensor-overlap userbuffers)
# Parts on several streams end sooner than their copies: what is left of these stays exposed.
holds "exposed tensor communication, hidden" "$hidden < 0.9 * $exposed"

# Parts too small for a GPU run on several streams: so it is where tensor ranks have little each.
large="run --model llama2-70b --gpu h100 --nodes 8 --tensor 8 --pipeline 2 --sequence-parallel \
  --data zero1 --framework megatron-core --global-batch 64 --micro-batch 1"
holds "user buffers against none of 70B" "$(figure_of step_time_s $large --tensor-overlap userbuffers) \
  < 1.02 * $(figure_of step_time_s $large)"

titan="run --model llama3-70b --gpu h100 --nodes 4 --tensor 8 --sequence-parallel --data zero3 \
  --framework torchtitan@2025 --global-batch 32 --micro-batch 1"
holds "async_tp against none" \
  "$(figure_of step_time_s $titan --tensor-overlap async_tp) < 1.02 * $(figure_of step_time_s $titan)"

expect 3 'tensor_overlap = "userbuffers" without sequence_parallel' run --model llama2-7b --gpu h100 \
  --gpus 8 --tensor 8 --framework megatron-core --global-batch 8 --tensor-overlap userbuffers
expect 3 'megatron-core 0.* cannot run tensor_overlap = "async_tp"' $megatron \
  --tensor-overlap async_tp
expect 3 'async_tp with torchtitan .* as it is not compiled' $titan --tensor-overlap async_tp \
  --set 'software.fusion="eager"'
expect 3 'of 8 tensor ranks on pcie5-8' ${megatron%--gpu h100*} --node pcie5-8 \
  ${megatron#*--gpu h100} --tensor-overlap userbuffers
expect 3 '"userbuffers" with recipe "fp8_block"' $megatron --tensor-overlap userbuffers \
  --recipe fp8_block
expect 0 'plan.tensor_overlap has no effect here: there is one tensor rank' run --model llama2-7b \
  --gpu h100 --gpus 8 --framework megatron-core --data zero1 --global-batch 8 \
  --tensor-overlap userbuffers

# Activations: memory falls, and a link that is too slow is waited for.
small="run --model llama2-7b --gpu h100 --gpus 8 --framework megatron-core --data zero1 \
  --global-batch 32 --micro-batch 1"
before=$(figure_of memory_gib_per_gpu $small)
after=$(figure_of memory_gib_per_gpu $small --activation-offload 0.5)
holds "memory with half of the activations offloaded" "$after < 0.9 * $before"
expect 0 '^  exposed comm.* offload [1-9]' $small --activation-offload 0.5 --set 'cluster.node.host_link="2 GB/s"'
slow=$(figure_of exposed_communication_s.offload $small --activation-offload 0.5 --set 'cluster.node.host_link="2 GB/s"')
holds "exposed at 2 GB/s" "$slow > 1"
fast=$(figure_of exposed_communication_s.offload $small --activation-offload 0.5 --set 'cluster.node.host_link="450 GB/s"')
holds "hidden at 450 GB/s" "$fast < 0.01"
expect 3 'activation_offload is no share' $small --activation-offload 1.5
expect 3 'activation_offload with schedule = "zb_h1"' run --model llama2-7b --gpu h100 --gpus 8 \
  --pipeline 8 --global-batch 32 --micro-batch 1 --schedule zb_h1 --activation-offload 0.5
expect 3 'activation_offload with a part of the model of 1 layers' $small --pipeline 8 \
  --virtual-stages 4 --activation-offload 0.5

# The optimizer: its states leave, the host updates them; piece by piece is faster.
states=$(figure_of memory_gib_per_gpu $small --optimizer-offload 1)
holds "memory without optimizer states" "$states < $before"
whole=$(figure_of step_time_s $small --optimizer-offload 1)
pieces=$(figure_of step_time_s $small --optimizer-offload 1 \
  --set plan.optimizer_offload_overlap=true)
kept=$(figure_of step_time_s $small)
holds "offloaded updates" "$kept < $pieces && $pieces < $whole"
expect 3 'optimizer_offload on pcie5-8, whose host is not known' run --model llama2-7b \
  --node pcie5-8 --framework megatron-core --data zero1 --global-batch 32 --optimizer-offload 1
expect 3 'optimizer_offload of torchtitan 2026 without its parameters' run --model llama2-7b --gpu h100 \
  --gpus 8 --framework torchtitan --global-batch 32 --optimizer-offload 1
expect 0 'optimizer_offload_overlap has no effect here: no optimizer is offloaded' $small \
  --set plan.optimizer_offload_overlap=true
expect 0 'host_memory has no effect here: nothing is offloaded' $small \
  --set 'cluster.node.host_memory="1 TB/s"'

# What a framework is told.
expect 0 '^--optimizer-cpu-offload' launch ${small#run } --optimizer-offload 0.5
expect 0 '^--tp-comm-overlap' launch ${megatron#run } --tensor-overlap userbuffers

exit $((failures > 0))
