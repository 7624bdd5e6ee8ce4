#!/bin/sh
# Where stepcast writes or deletes, a link that somebody laid is not followed: what it leads to stays.
#   links.sh FOLDER_OF_PROGRAMS SOURCE
set -u
program=$1/stepcast
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"
cd "$work" || exit 1

mkdir precious
for name in file 0001.toml sweep.json results.json results.jsonl; do echo mine >precious/$name; done
whole=$(cat precious/* | cksum)
unharmed() {
  [ "$(cat precious/* | cksum)" = "$whole" ] && return
  echo "$1: what the link leads to was changed"
  failures=$((failures + 1))
}

step="--model llama2-1b --gpu h100 --gpus 8 --data zero2 --local-batch 1 --quiet"
for option in csv timeline memory-timeline; do
  ln -s precious/file "$option.json"
  # shellcheck disable=SC2086
  expect 7 "is a link, which is not followed" run $step --$option $option.json
  unharmed "--$option"
done
ln -s precious/file report.html
# shellcheck disable=SC2086
expect 3 "is no report of stepcast" run $step --report report.html
unharmed "--report"
ln -s nowhere dangling.csv
# shellcheck disable=SC2086
expect 7 "is a link" run $step --csv dangling.csv
[ ! -e nowhere ] || { echo "a link to nothing was followed"; failures=$((failures + 1)); }
# shellcheck disable=SC2086
expect 0 "step_time_s" run $step --csv /dev/stdout

sweep() {
  # shellcheck disable=SC2086
  set -- "$@" sweep $step --set 'sweep.batch.local=[1, 2]'
  folder=$3
  code=$1 pattern=$2
  shift 3
  expect "$code" "$pattern" "$@" --out "$folder"
}
lay() { # NAME TARGET: a folder with one link in it
  rm -rf out
  mkdir out
  ln -s "$work/precious$2" "out/$1"
}
for name in .stepcast.lock results.jsonl results.h5 scenario.toml; do
  lay $name /file
  # shellcheck disable=SC2086
  "$program" sweep $step --set 'sweep.batch.local=[1, 2]' --out out >log 2>&1 &&
    { echo "out/$name: was taken"; failures=$((failures + 1)); }
  unharmed "out/$name"
done
for name in points stepcast.new stepcast.old; do
  lay $name ""
  sweep 3 "is a link\|is not what stepcast wrote" out
  unharmed "out/$name"
done

# Over a study that is there: its points, and what a later study puts in their place.
rm -rf out
sweep 0 "" out
for name in stepcast.old stepcast.new; do
  ln -s "$work/precious" out/$name
  step="$step --set batch.micro_batch=1"
  sweep 3 "'out/$name' is a link, which is not followed" out
  unharmed "out/$name of another study"
  rm out/$name
done
rm out/points/0001.toml
ln -s "$work/precious/file" out/points/0001.toml
sweep 0 "" out
unharmed "out/points/0001.toml"

# A list of what to move names nothing outside.
rm -rf out/stepcast.new
mkdir -p out/stepcast.new
echo mine >escaped
printf '../escaped\n' >out/stepcast.new/ready
echo theirs >out/escaped
sweep 0 "" out
[ "$(cat escaped)" = mine ] || { echo "a file outside was replaced"; failures=$((failures + 1)); }
[ "$failures" -eq 0 ]
