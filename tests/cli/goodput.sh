#!/bin/sh
# Failures and goodput as a user meets them.
#   goodput.sh FOLDER_OF_PROGRAMS SOURCE
set -u
program=$1/stepcast
. "$2/tests/cli/shared/expect.sh"

big="run $2/scenarios/failures_llama3.toml"

# Nothing is said of failures unless it is asked for.
small="run --model llama2-7b --gpu h100 --nodes 16 --data zero2 --local-batch 2"
"$program" $small | grep -q goodput && {
  echo "goodput without [failures]"
  failures=$((failures + 1))
}

# One key turns it on; what it rests on is printed.
expect 0 'goodput (ETTR) ' $small --set failures.restart=5min
expect 0 '3.79 per 1,000 node-days (llama3-405b)' $small --set failures.restart=5min
expect 0 'small jobs were measured to fail' $small --set failures.restart=5min
expect 0 'rsc-1024' $small --set failures.rates=rsc-1024
case $output in *'small jobs were measured'*) echo "small jobs' own rates are too kind to small jobs" ;
  failures=$((failures + 1)) ;; esac
expect 0 '"tokens_per_day": ' $small --set failures.restart=5min --json
expect 0 '6.50 per 1,000 node-days (rsc-1)' $small --set failures.rates=rsc-1

# Llama 3's own run: 419 interruptions, more than 90 % of the time.
json=$("$program" $big --json)
value() { printf '%s\n' "$json" | awk -F'[:,]' -v key="\"$1\"" '$1 ~ key { print $2; exit }'; }
awk "BEGIN { exit !($(value interruptions) > 410 && $(value interruptions) < 428) }" || {
  echo "Llama 3: $(value interruptions) interruptions, counted 419"
  failures=$((failures + 1))
}
awk "BEGIN { exit !($(value goodput) > 0.90 && $(value goodput) < 0.95) }" || {
  echo "Llama 3: goodput $(value goodput), reported more than 0.90"
  failures=$((failures + 1))
}
awk "BEGIN { d = $(value goodput) - $(value daly); exit !(d < 0.005 && d > -0.005) }" || {
  echo "simulated $(value goodput), Daly $(value daly)"
  failures=$((failures + 1))
}

# Mistakes, and keys that change nothing.
expect 3 "unknown failure 'rsc-3', did you mean 'rsc-1'" $small --set failures.rates=rsc-3
expect 3 "'slowdown' in \[failures.slow\] is not between 1 and 1000" \
  $small --set failures.slow.slowdown=0.5
expect 0 'failures.repair has no effect here: there is always a spare' \
  $small --set failures.repair=24h
expect 0 'failures.flap.lasts has no effect here' $small --set failures.flap.lasts=20s
expect 3 '\[failures\] beside \[collective\]' collective all_reduce --gpu h100 --nodes 2 \
  --bytes 1MiB --set failures.restart=5min

# Slow nodes and missing ones are steps of their own.
expect 0 'slow node .* times as long, simulated' $small --set failures.slow.per_1000_node_days=1 \
  failures.slow.slowdown=1.5 failures.slow.noticed_after=1h
expect 0 'of the tokens/s without one copy of the model, simulated' $small \
  --set failures.spares=0 'failures.empty="shrink"'
expect 0 'none left for' $small --set failures.spares=1

# Days and dollars are as unsure as the goodput is, and a run that never ends says so.
whole="$small --tokens 1T --json --set run_goal.today=2026-11-23"
# shellcheck disable=SC2086
days_high() { "$program" $whole "$@" | sed -n 's/^ *"days_high": \([0-9.e+]*\),*/\1/p'; }
sure=$(days_high failures.rates=rsc-1024 failures.sigma=0)
unsure=$(days_high failures.rates=rsc-1024 failures.sigma=1.5)
awk "BEGIN { exit !($unsure > 1.001 * $sure) }" || {
  echo "a run of unsure failures takes $unsure days at most, of sure ones $sure"
  failures=$((failures + 1))
}
expect 0 'no work is ever kept, the run would not end' $small --tokens 1T --set \
  failures.per_1000_node_days=1e6 failures.runs=10 failures.days=1 \
  'failures.checkpoint=[{every="1 h"}]'

# What clusters forecast of each other, and runs' ETTR.
program=$1/stepcast-validate
expect 0 '^LLM3 .* -41.7 ' goodput
expect 0 'restart_min checkpoint_s' goodput
expect 0 '"off_points"' goodput --json

exit $((failures > 0))
