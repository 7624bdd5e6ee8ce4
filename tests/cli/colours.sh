#!/bin/sh
# Colours on a terminal, none in a pipe, with NO_COLOR, or on a dumb terminal.
#   colours.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
stepcast=$1/stepcast
command -v script >/dev/null 2>&1 || { echo "skipped: no script to make a terminal"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
esc=$(printf '\033')

# shown ENVIRONMENT COMMAND: what a terminal gets of it.
shown() {
  env TERM=xterm NO_COLOR= "$1" script -qc "$2" /dev/null </dev/null >shown 2>&1 || true
}
fail() {
  echo "$1"
  cat -v shown | head -n 40
  exit 1
}

run="'$stepcast' run --model llama2-7b --gpu h100 --nodes 1 --local-batch 2 --sequence 4k"
search="'$stepcast' search --model llama2-1b --gpu h100 --nodes 1 --global-batch 16 --sequence 4k \
  --framework pytorch-fsdp2 --quiet --top 3"
none="'$stepcast' run --model llama2-70b --gpu h100 --nodes 1 --data ddp --local-batch 1 --sequence 4k"

shown A=1 "$run"
grep -q "^$esc\[33mwarning$esc\[0m" shown || fail "a warning without its colour"
shown A=1 "$search"
grep -q "^$esc\[1;32m 1 .*$esc\[0m" shown || fail "the best plan without its colour"
! grep -q "$esc.*=2 " shown || fail "the second is not the best"
shown A=1 "$none"
grep -q "^$esc\[31mrefused$esc\[0m .*the plan needs" shown || fail "a refusal without its colour"

for quiet in NO_COLOR=1 TERM=dumb; do
  for command in "$run" "$search" "$none"; do
    shown $quiet "$command"
    ! grep -q "$esc\[[0-9;]*m" shown || fail "$quiet: colours"
    grep -q '[a-z]' shown || fail "$quiet: nothing said"
  done
done
sh -c "$run" >shown 2>&1
! grep -q "$esc" shown || fail "colours in a file"
