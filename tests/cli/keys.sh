#!/bin/sh
# The keys of a scenario as a user meets them: options, show keys, suggestions, warnings, JSON.
#   keys.sh FOLDER_OF_PROGRAMS SOURCE
set -u
program=$1/stepcast
. "$2/tests/cli/shared/expect.sh"

small="run --model llama2-1b --sequence 512 --gpu h100 --nodes 1 --global-batch 8 --data zero1"

# Every key with its type, its default and what it means.
expect 0 '^plan.recompute_every *integer *1 ' show keys
expect 0 '^cluster.node.gpu.memory *"64 MiB"' show keys

# A key that is misspelt, or written without its table.
expect 3 "unknown key 'plna.tensor', did you mean 'plan.tensor'?" $small --set plna.tensor=2
expect 3 "unknown key 'tensr', did you mean 'plan.tensor'?" $small --set tensr=2
expect 3 "unknown key 'tensr' in \[plan\], did you mean 'tensor'?" $small --set plan.tensr=2

# What is known is named, and named once.
expect 3 "known: " $small --set software.framework=word
if printf '%s\n' "$output" | sed 's/.*known: //; s/, /\n/g' | sort | uniq -d | grep .; then
  echo "a known name is named twice"
  failures=$((failures + 1))
fi

# --framework NAME[@VERSION]; the report says what was run with.
expect 0 '^framework *megatron-core 0.7' $small --framework megatron-core
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
expect 0 '^megatron-core 0.7; NCCL 2.20' \
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

exit $((failures > 0))
