#!/bin/sh
# A whole run as a user asks for it: days, dollars, MWh, CO2; lists of prices; caps.
#   goal.sh FOLDER_OF_PROGRAMS SOURCE
set -u
program=$1/stepcast
. "$2/tests/cli/shared/expect.sh"

of_any="run --model llama2-1b --sequence 512 --data zero1"
small="$of_any --gpu h100 --nodes 2 --global-batch 64"
today="--set run_goal.today=2026-11-23"

# Nothing is asked for, nothing is said; a price alone prices tokens.
expect 0 '^power  *[0-9]* W per GPU' $small
case $output in *"whole run"*) echo "a whole run that nobody asked for"; failures=$((failures + 1)) ;; esac
expect 0 '^  tokens .* USD a million' $small --price 2.5
expect 0 '"usd_per_million_tokens"' $small --price "2.5 USD/h" --json

# Tokens, sequences, days.
expect 0 '^whole run  *1.00T tokens, no failures assumed' $small --tokens 1T $today
expect 0 '^  time .* days (.* to .*) thousand GPU hours' $small --tokens 1T $today
expect 0 '^  emissions .* t CO2e .* at 369 g/kWh, USA' $small --tokens 1T --carbon USA $today
expect 0 'goodput 0.9' $small --samples 1B --goodput 0.9 $today
expect 0 '^  time  *30.0 days' $small --days 30 $today
expect 3 "more than one of 'tokens', 'samples' and 'days'" $small --tokens 1T --days 3
expect 3 'is not a unit of count' $small --tokens "1 furlong"
expect 3 "'tokens' in .run_goal. is 15: less than the 32768 of one step, e.g. .15T" \
  $small --tokens 15
expect 3 "'samples' in .run_goal. is 63: less than the 64 of one step" $small --samples 63
for country in DEU Germany germany; do
  expect 0 '^  emissions .* at 381 g/kWh, DEU' $small --tokens 1T --carbon $country $today
done
expect 3 "no grid 'Germania', did you mean 'Germany'" $small --tokens 1T --carbon Germania
expect 3 '"M USD" is not a unit of amount of money, did you mean "million USD"' \
  $small --tokens 1T --own --set "cost.capex=5 M USD"

# Llama 3.1's card: 39.3 million H100 hours at TDP.
expect 0 '^  emissions  *11,400 t CO2e at 414 g/kWh' $of_any --gpu h100 --nodes 2048 \
  --global-batch 16384 --days 99.9451 --pue 1 --carbon "414 g/kWh" --set power.count=tdp $today

# Lists: their range, their date.
expect 0 'rent 3.99 (2.99 to 12.3) USD/h per GPU, median of 15 lists (aws, azure, .*, verda)' \
  $small --tokens 1T $today
expect 0 'rent 4.50 USD/h per GPU, nebius.com/prices, in api-evangelist/nebius .*, 2026-10-01' \
  $small --tokens 1T --price nebius $today
cat >"$work/old.toml" <<END
kind = "reserved"
source = "our old blocks"
date = "2024-12"
[gpus]
h100-sxm5-80gb = "4.9 USD/h"
END
expect 0 'warning .*the price is of 2024-12, 23 months old: our old blocks' \
  $small --tokens 1T --price "$work/old.toml" $today
expect 3 "unknown price 'nebiu', did you mean 'nebius'?" $small --tokens 1T --price nebiu
cat >"$work/mine.toml" <<END
kind = "on demand"
source = "our contract"
date = "2026-10"
[gpus]
h100-sxm5-80gb = ["1.9 USD/h", "2 USD/h", "2.2 USD/h"]
END
expect 0 'rent 2.00 (1.90 to 2.20) USD/h per GPU, our contract, 2026-10' \
  $small --tokens 1T --price "$work/mine.toml" $today
expect 0 'owned, 2\.[0-9]* (.*) USD/h per GPU, of 49.2 thousand USD in 4.00 years at 8.00 %' \
  $small --tokens 1T --own $today
expect 0 'no list has a price of gh200' $of_any --gpu gh200 --nodes 1 --global-batch 64 --tokens 1T

# Keys without effect are named, wrong ones refused.
expect 0 'warning  *site.pue has no effect here: no whole run and no price' $small --pue 1.3
expect 0 'warning  *cost.years has no effect here: the hardware is rented' \
  $small --tokens 1T --set cost.years=3
expect 3 "'pue' in \[site\] is less than 1" $small --pue 0.8

# A cap slows down and saves; the report says how sure it is.
expect 0 '^power .*tensor cores at 0.89 of their usual rate' $small --power-cap "500 W"
expect 0 'warning .*a law of low confidence' $small --power-cap "500 W"
expect 0 'warning .*below what was measured' $small --power-cap "350 W"
expect 0 'power.cap has no effect here' $small --power-cap "900 W"
expect 3 'is less than its memory draws' $small --power-cap "100 W"
expect 0 'tensor cores at 0.7[0-9]* of their usual rate' $small --clock "1200 MHz"

# Sweeps, CSV, compare, search.
sed 's/nodes = 8/nodes = 2/' "$2/scenarios/power_caps.toml" >"$work/caps.toml"
expect 0 'days  *between .*cost  *between .*USD per' sweep "$work/caps.toml"
expect 0 'run.days' sweep "$work/caps.toml" --csv -
two="compare --model llama2-1b --nodes 1 --local-batch 2 --gpu a100,h100 --tokens 1T"
expect 0 'days  *between .*cost  *between .*USD per' $two
# A list's price is one change, whatever it says beside the price, and none of it moves the step.
expect 0 '^cost.price  *[0-9.]* USD/h  *[0-9.]* USD/h  *no effect' $two
case $output in *cost.price_low* | *cost.source*) echo "the range of a price is a change of its own" ;
  failures=$((failures + 1)) ;; esac
search="search --model llama2-1b --nodes 1 --global-batch 64 --framework pytorch-fsdp2"
expect 0 'k USD' $search --gpu h100 --fix plan.tensor=1 --tokens 1T --own --objective dollars-per-token
# With bands, and what failures leave: as a run says of the same plan.
expect 0 'days *between *MWh *k USD *between' $search --gpu h100 --fix plan.tensor=1 --tokens 1T --own
expect 0 '"goodput"' $search --gpu h100 --fix plan.tensor=1 --tokens 1T --json \
  --set failures.per_1000_node_days=2000
expect 2 'dollars-per-token without --price' $search --gpu gh200 --objective dollars-per-token

# What is printed for a user reads back.
expect 0 'whole run' $small --tokens 1T --own --out "$work/out" $today
expect 0 '^whole run  *1.00T tokens' run "$work/out/scenario.toml"

[ $failures -eq 0 ] && echo "a whole run is told as it is asked for"
exit $((failures > 0))
