#!/bin/sh
# Fuzzes one reader, or all of them, as many at once as there are cores, for so many seconds each.
# Goes on from what earlier campaigns kept in build/fuzz/corpus; finds lie in build/fuzz/finds.
# Prints a line per reader: executions, edges covered, those new in the second half, inputs kept,
# finds. Then keeps, of the inputs, the fewest that cover as much (--keep: in fuzz/corpus.tar.xz).
# With FUZZ_SEED=N the same inputs every time, 30,000 of each reader at most.
#   sh fuzz/campaign.sh BUILD [READER|all] [SECONDS]
#   sh fuzz/campaign.sh BUILD --keep
set -eu
build=$1
program=$build/stepcast_fuzz
cd "$(dirname "$0")/.."
work=build/fuzz
archive=fuzz/corpus.tar.xz

# The words of a reader's seeds, as libFuzzer's dictionary.
dictionary() {
  find "$@" -type f -exec cat {} + | tr -c '[:alnum:]_.-' '\n' |
    grep -aE '^[[:alpha:]_][[:alnum:]_.-]{2,30}$' | sort | uniq -c | sort -rn | head -400 |
    awk '{ print "\"" $2 "\"" }'
}

# One reader's campaign and its line.
campaign() {
  reader=$1 seconds=$2
  corpus=$work/corpus/$reader seeds=$work/seeds/$reader
  log=$work/$reader.log dictionary=$work/$reader.dict
  [ -s "$dictionary" ] && dictionary=-dict=$dictionary || dictionary=-verbosity=1
  rm -f "$work/finds/$reader-"*
  set --
  [ -z "${FUZZ_SEED-}" ] || set -- "-seed=$FUZZ_SEED" -runs=30000
  status=0
  # The limits of the issue's promise: 10 s and 1 GiB (of the reader; ASan's shadow beside it).
  "$program" "$reader" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
    -max_len=65536 "$@" -print_final_stats=1 "$dictionary" -artifact_prefix="$work/finds/$reader-" \
    "$corpus" "$seeds" >"$log" 2>&1 || status=$?
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1)
  # Lines are "#N KIND cov: EDGES ...": the edges when half of the executions were done, and last.
  edges=$(awk -v half="$((${executions:-0} / 2))" '
    /^#[0-9]+.* cov: / { for (i = 2; i < NF; ++i) if ($i == "cov:") last = $(i + 1)
                         if (substr($1, 2) + 0 <= half) before = last }
    END { printf "%d %d", last, last - before }' "$log")
  printf '%-18s %12s %8s %10s %8s %6s\n' "$reader" "${executions:-0}" "${edges% *}" "${edges#* }" \
    "$(find "$corpus" -type f | wc -l)" "$(find "$work/finds" -name "$reader-*" | wc -l)"
  if [ $status -ne 0 ]; then
    grep -a -m 4 -E 'ERROR|SUMMARY|terminate|what\(\)' "$log" | sed 's/^/    /' || true
    return 1
  fi
}

# The smallest corpus with the same coverage, of files that are short enough to be kept.
keep() {
  mkdir -p "$work/kept"
  for reader in $("$build/stepcast_replay" --list); do
    rm -rf "${work:?}/kept/$reader"
    mkdir -p "$work/kept/$reader" "$work/corpus/$reader"
    "$program" "$reader" -merge=1 -max_len=4096 -timeout=10 "$work/kept/$reader" \
      "$work/corpus/$reader" >"$work/$reader.merge.log" 2>&1
  done
  tar -C "$work/kept" --sort=name --owner=0 --group=0 --mtime=2026-01-01 -cJf "$archive" .
  echo "$archive: $(tar -tJf "$archive" | grep -vc '/$') inputs, $(wc -c <"$archive") bytes"
}

case ${2:-all} in
  --keep) keep; exit ;;
  --one) campaign "$3" "$4"; exit ;;
  all) readers=$("$build/stepcast_replay" --list) ;;
  *) readers=$2 ;;
esac
seconds=${3:-20}
mkdir -p "$work/finds"
for reader in $readers; do
  mkdir -p "$work/corpus/$reader" "$work/seeds/$reader"
  for file in $(sh fuzz/seeds.sh "$reader") fuzz/corpus/"$reader"/*; do
    [ -f "$file" ] && cp "$file" "$work/seeds/$reader/$(echo "$file" | tr / _)"
  done
  [ -f "$archive" ] && tar -C "$work/corpus" -xJf "$archive" "./$reader" 2>/dev/null || true
  dictionary "$work/seeds/$reader" "$work/corpus/$reader" >"$work/$reader.dict"
done
printf '%-18s %12s %8s %10s %8s %6s\n' reader executions edges 'last half' corpus finds
echo "$readers" | tr ' ' '\n' |
  xargs -P "$(nproc 2>/dev/null || echo 2)" -I{} sh fuzz/campaign.sh "$build" --one {} "$seconds"
