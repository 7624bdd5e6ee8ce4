#!/bin/sh
# Low-precision recipes: what a step gains, what each takes in memory, what is refused.
#   precision.sh FOLDER_OF_PROGRAMS
set -u
program=$1/stepcast
. "$(dirname "$0")/shared/expect.sh"

step() {
  gpu=$1
  shift
  "$program" run --model llama3-8b --gpu "$gpu" --nodes 2 --data zero1 --tensor 2 \
    --sequence-parallel --framework megatron-core --global-batch 32 --micro-batch 1 \
    --sequence 8192 --json "$@" |
    awk -F'[:,]' '/"step_time_s"/ { print $2 }'
}
between() {
  awk "BEGIN { exit !($1 < $2 && $2 < $3) }" || {
    echo "$4: not $1 < $2 < $3"
    failures=$((failures + 1))
  }
}

# fp8 products run at twice the rate, with casts and all that is not a product: less than 2x.
wide=$(step h100)
for recipe in fp8_delayed fp8_current; do
  low=$(step h100 --recipe $recipe)
  between "$(awk "BEGIN { print $wide / 2 }")" "$low" "$wide" "h100 $recipe"
done
delayed=$(step h100 --recipe fp8_delayed)
between "$delayed" "$(step h100 --recipe fp8_delayed --set precision.bf16_first_layers=8)" "$wide" \
  "eight layers in 16 bits"
# Every recipe runs on Blackwell.
for recipe in fp8_delayed fp8_current fp8_block mxfp8 nvfp4; do
  [ -n "$(step b200 --recipe $recipe)" ] || {
    echo "b200 $recipe does not run"
    failures=$((failures + 1))
  }
done

llama="run --model llama3-8b --nodes 2 --data zero1 --tensor 2 --framework megatron-core --local-batch 1"
expect 0 'products in fp8_delayed' $llama --gpu h100 --recipe fp8_delayed
expect 3 'h100-sxm5-80gb cannot run recipe "mxfp8"' $llama --gpu h100 --recipe mxfp8
expect 3 'came with Blackwell' $llama --gpu h100 --recipe nvfp4
expect 3 'from Ada and Hopper on' $llama --gpu a100 --recipe fp8_current
expect 3 'take bf16; recipe = "fp8_current"' $llama --gpu h100 --set 'precision.compute="fp8"'
expect 3 'has no recipe "fp8_delayed"' run --model llama3-8b --gpu h100 --nodes 2 --data zero3 \
  --local-batch 1 --recipe fp8_delayed
expect 0 'no recipe of low precision is on' $llama --gpu h100 --set precision.fp8_parameters=true

exit $((failures > 0))
