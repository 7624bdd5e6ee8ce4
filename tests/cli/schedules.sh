#!/bin/sh
# Orders of pipeline stages as a user meets them: names, files, layouts, refusals.
#   schedules.sh FOLDER_OF_PROGRAMS SOURCE
set -u
program=$1/stepcast
. "$2/tests/cli/shared/expect.sh"

stages="run --model llama2-7b --gpu h100 --nodes 2 --pipeline 8 --global-batch 64 --micro-batch 1"

# The bubble of a schedule, in seconds.
bubble_of() {
  "$program" $stages --framework torchtitan --schedule "$1" --json |
    awk -F'[:,]' '/"bubble_s"/ { print $2; exit }'
}
for pair in "1f1b zb_h1" "zb_h1 zb_v"; do
  longer=$(bubble_of "${pair% *}") shorter=$(bubble_of "${pair#* }")
  awk "BEGIN { exit !($shorter > 0 && $shorter < 0.8 * $longer) }" || {
    echo "bubbles of $pair: $longer s, $shorter s"
    failures=$((failures + 1))
  }
done

# What runs it is chosen, or refuses it by name.
expect 0 '^framework *torchtitan' $stages --schedule zb_v
expect 3 'megatron-core 0.* cannot run schedule = "zb_h1"' $stages --schedule zb_h1 --data zero1
expect 3 'torchtitan 2026 cannot run schedule = "dualpipe"' $stages --schedule dualpipe
expect 0 '(dualpipe, 2 chunks a stage)' $stages --schedule dualpipe --data ddp \
  --set 'software.schedules=["dualpipe"]'

# A file of 1F1B is 1F1B; what is no order is refused with its line and cell.
two="run --model llama2-1b --gpu h100 --gpus 2 --pipeline 2 --framework torchtitan"
two="$two --global-batch 4 --micro-batch 1 --json"
cat >"$work/order.csv" <<END
0F0,0F1,,0B0,0F2,0B1,0F3,0B2,0B3
1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3
END
time_of() { "$program" $two --schedule "$1" | grep '"step_time_s"'; }
built_in=$(time_of 1f1b) listed=$(time_of "$work/order.csv")
[ -n "$built_in" ] && [ "$built_in" = "$listed" ] || {
  echo "1f1b: $built_in, the same from a file: $listed"
  failures=$((failures + 1))
}
printf '0F0,0B0\n1F0,1X0\n' >"$work/wrong.csv"
expect 3 "wrong.csv:2: cell 2 '1X0' is no turn" $two --schedule "$work/wrong.csv"
printf '0F0,0B0\n1F0,1B0\n' >"$work/short.csv"
expect 3 'short.csv runs 1 micro-batches, the step has 4' $two --schedule "$work/short.csv"

# Megatron's layouts.
expect 0 'pipeline 8' $stages --stages 'Ett|(t*5|)*6L'
expect 3 "'Ett|xL' is no layout of stages: 'x' is no item, column 5" $stages --stages 'Ett|xL'

exit $((failures > 0))
