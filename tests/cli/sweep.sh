#!/bin/sh
# A sweep never dies of one point, never loses what is finished, never overwrites what is not its
# own; and every program says how it ends.
#   sweep.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
programs=$1
stepcast=$programs/stepcast
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/cli/shared/patience.sh
. "$2/tests/cli/shared/patience.sh"
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"
# shellcheck source=tests/cli/shared/signals.sh
. "$2/tests/cli/shared/signals.sh"

fail() {
  echo "$*:"
  head -5 "$work/out" "$work/err"
  exit 1
}

# ends CODE COMMAND...: its exit code; what it prints is in $work/out and $work/err
ends() {
  wanted=$1
  shift
  code=0
  "$@" >"$work/out" 2>"$work/err" || code=$?
  [ "$code" = "$wanted" ] || fail "$*: exit $code, wanted $wanted"
}

says() {
  grep -q -e "$2" "$work/$1" || fail "no \"$2\" in $1"
}

# scenario NAME LINE...: 1B on H100, then these lines of [sweep]
scenario() {
  file=$work/$1.toml
  shift
  printf '%s\n' '[model]' 'name = "llama2-1b"' '[cluster]' 'node = "dgx-h100"' '[batch]' \
    'local = 1' '[sweep]' "$@" >"$file"
}

# One table of exit codes, at the end of every help.
for program in stepcast stepcast-calibrate stepcast-validate stepcast-trainer; do
  "$programs/$program" --help >"$work/help"
  for code in 0 1 2 3 4 5 6 7 77 129 130 143; do
    grep -q "^ *$code  [a-z]" "$work/help" || { echo "$program --help: no $code"; exit 1; }
  done
done
"$stepcast" sweep --help | tail -n 1 | grep -q "^ *143 "

# What does not divide, and what is unknown, is a row like what does not fit; the others are there.
scenario mixed '"plan.tensor" = [2, 3]' '"model.name" = ["llama2-1b", "llama2-70b", "lama"]'
ends 0 "$stepcast" sweep "$work/mixed.toml" --refused --out "$work/mixed"
[ "$(grep -c "refused: " "$work/out")" = 5 ] || fail "a wrong number of refused rows"
says out "refused: $work/mixed.toml:8: .*tensor"
says out "refused: .*unknown model 'lama'"
says out "refused: .*optimizer"
[ "$(wc -l <"$work/mixed/results.jsonl")" = 6 ] || fail "six points are six lines"
ends 4 "$stepcast" sweep "$work/mixed.toml" --set 'sweep.plan.tensor=[3, 5]'
# A sweep without an answer says what it would have run with.
scenario refused '"plan.tensor" = [3, 5]'
ends 4 "$stepcast" run "$work/refused.toml" --framework megatron-core --nccl 2.20
says out '^megatron-core 0.18; NCCL 2.20$'
scenario full '"batch.local" = [4096, 8192]'
ends 4 "$stepcast" run "$work/full.toml"
says out 'chosen by default for .*; NCCL 2'
# A mistake of the whole file is no row.
scenario wrong '"plan.tensor" = [1, 2]'
sed -i 's/^local = 1/lokal = 1/' "$work/wrong.toml"
ends 3 "$stepcast" sweep "$work/wrong.toml"
says err "^$work/wrong.toml:6: unknown key 'lokal'"

# Killed in the middle of a line, --resume goes on, and comes to what an uninterrupted run says.
scenario long '"batch.local" = [1, 2, 3, 4]' '"cluster.nodes" = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]'
ends 0 "$stepcast" sweep "$work/long.toml" --json --out "$work/whole"
cp "$work/out" "$work/whole.json"
cmp "$work/whole.json" "$work/whole/results.json"
half=$(($(head -n 20 "$work/whole/results.jsonl" | wc -c) + 100))
# until_half NUMBER FOLDER [PLACE]: a sweep that gets this signal then
until_half() {
  signal_at $half "$1" "$2/${3:-results.jsonl}"
  exec "$stepcast" sweep "$work/long.toml" --out "$work/$2" --threads 1 --json
}
code=0
(until_half 9 killed) >"$work/out" 2>"$work/err" || code=$?
[ $code = 137 ] || fail "not killed, but exit $code"
[ ! -e "$work/killed/results.json" ] || fail "killed too late"
kept=$(wc -l <"$work/killed/results.jsonl")
[ -n "$(tail -c 1 "$work/killed/results.jsonl")" ] || fail "no line is torn"
ends 0 "$stepcast" sweep "$work/long.toml" --out "$work/killed" --resume --json
cmp "$work/whole.json" "$work/out"
cmp "$work/whole.json" "$work/killed/results.json"
[ "$(wc -l <"$work/killed/results.jsonl")" = 40 ] || fail "$kept points were run again"
diff -r "$work/whole/points" "$work/killed/points"
# With everything there it only reads.
ends 0 "$stepcast" sweep "$work/long.toml" --out "$work/killed" --resume --json
cmp "$work/whole.json" "$work/out"
# A line that is none is named.
sed -i '2s/^/x/' "$work/killed/results.jsonl"
ends 3 "$stepcast" sweep "$work/long.toml" --out "$work/killed" --resume
says err "results.jsonl:2: is no row"

# Asked to end: what is finished is printed and written, the exit code says by what.
for signal in 2 15 1; do
  out=$work/signal-$signal
  code=0
  (until_half $signal signal-$signal) >"$out.json" 2>"$work/err" || code=$?
  [ $code = $((128 + signal)) ] || fail "$signal: exit $code"
  grep -q '"interrupted": true' "$out.json"
  cmp "$out.json" "$out/results.json"
  [ "$(grep -c '"step_time_s"' "$out.json")" = "$(wc -l <"$out/results.jsonl")" ] ||
    fail "$signal: rows are lost"
done

# Shards: each its own points, together the whole.
for shard in 1 2 3; do
  ends 0 "$stepcast" sweep "$work/long.toml" --out "$work/shards" --shard $shard/3
done
[ ! -e "$work/shards/results.json" ] || fail "a shard wrote the results of all"
ends 3 "$stepcast" sweep "$work/long.toml" --out "$work/shards" --shard 2/3
says err "results.2-of-3.jsonl' is there already, --resume"
ends 0 "$stepcast" sweep "$work/long.toml" --out "$work/shards" --resume --json
cmp "$work/whole.json" "$work/out"
[ ! -s "$work/shards/results.jsonl" ] || fail "the merge ran points again"
ends 2 "$stepcast" sweep "$work/long.toml" --shard 2/3
ends 2 "$stepcast" sweep "$work/long.toml" --out "$work/shards" --shard 4/3

# One writer.
(until_half 19 two) >/dev/null 2>&1 &
pid=$!
wait_until stopped $pid || fail "no first writer"
for more in "" --resume "--shard 1/2"; do
  # shellcheck disable=SC2086 # no word, one, or two
  ends 3 timeout "$(patience 60)" "$stepcast" sweep "$work/long.toml" --out "$work/two" $more
  says err "^--out: '$work/two' is being written by another stepcast"
done
kill -KILL $pid
wait $pid 2>/dev/null || true
ends 0 "$stepcast" sweep "$work/long.toml" --out "$work/two" --resume --json  # its lock is gone
cmp "$work/whole.json" "$work/out"

# A folder belongs to one study: another one replaces it when it is whole, and not before.
scenario short '"batch.local" = [1, 2]'
cp -r "$work/whole" "$work/other"
echo mine >"$work/other/notes.txt"
ends 3 "$stepcast" sweep "$work/short.toml" --out "$work/other" --resume
says err "belongs to another study"
ends 3 "$stepcast" sweep "$work/short.toml" --out "$work/other" --shard 1/2
ends 0 "$stepcast" sweep "$work/short.toml" --out "$work/other" --json
cmp "$work/out" "$work/other/results.json"
[ "$(ls "$work/other/points" | wc -l)" = 2 ] || fail "points of two sweeps"
[ "$(ls "$work/other")" = "notes.txt
points
results.h5
results.json
results.jsonl
scenario.toml
sweep.json" ] || fail "$(ls "$work/other")"
code=0
(until_half 15 other stepcast.new/results.jsonl) >"$work/interrupted" 2>"$work/err" || code=$?
[ $code = 143 ] || fail "exit $code"
says err "stepcast.new"
cmp "$work/out" "$work/other/results.json"
ends 0 "$stepcast" sweep "$work/long.toml" --out "$work/other" --resume
cmp "$work/whole.json" "$work/other/results.json"
[ ! -e "$work/other/stepcast.new" ] || fail "what was replaced is still there"
ends 0 "$stepcast" run "$work/other/points/0001.toml" --out "$work/other"  # a run replaces a sweep
[ ! -e "$work/other/results.jsonl" ] || fail "a run beside the lines of a sweep"
[ "$(cat "$work/other/notes.txt")" = mine ] || fail "the user's notes"

# The user's own files stay.
mkdir "$work/own"
cp "$work/short.toml" "$work/own/scenario.toml"
ends 3 "$stepcast" sweep "$work/own/scenario.toml" --out "$work/own"
says err "scenario.toml' is not what stepcast wrote"
cmp "$work/short.toml" "$work/own/scenario.toml"
cp -r "$work/whole" "$work/edited"
echo "# my own thoughts" >>"$work/edited/scenario.toml"
ends 3 "$stepcast" sweep "$work/edited/scenario.toml" --out "$work/edited"
grep -q "my own thoughts" "$work/edited/scenario.toml"

# A full disk: the answer is printed all the same and is one document, what was there is whole.
# A limit on the size of files stands for it; standard output is a pipe, which has none.
cp -r "$work/whole" "$work/full"
for blocks in 8 40; do  # the lines do not fit; the lines fit, the reports do not
  (
    echo 0 >"$work/code"
    ulimit -f $blocks
    "$stepcast" sweep "$work/long.toml" --json --out "$work/full" --set 'sweep.batch.local=[1]' \
      2>"$work/err" || echo $? >"$work/code"
  ) | cat >"$work/out"
  [ "$(cat "$work/code")" = 7 ] || fail "a full disk: exit $(cat "$work/code")"
  says err "cannot be written"
  "$python" -c 'import json, sys; assert len(json.load(sys.stdin)["points"]) == 10' <"$work/out"
  diff -r -x stepcast.new -x .stepcast.lock "$work/whole" "$work/full" || fail "new beside old"
done
ends 0 "$stepcast" sweep "$work/long.toml" --json --out "$work/full" --resume \
  --set 'sweep.batch.local=[1]'
cmp "$work/out" "$work/full/results.json"
code=0
"$stepcast" run "$work/whole/points/0001.toml" >/dev/full 2>"$work/err" || code=$?
[ $code = 7 ] || fail "standard output is full: exit $code"
code=0
"$stepcast" show gpus >&- 2>"$work/err" || code=$?
[ $code = 7 ] || fail "standard output is closed: exit $code"
