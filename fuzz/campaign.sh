#!/bin/sh
# Fuzzes one reader, or all of them one after another, for so many seconds each; what it finds
# beside crashes stays in build/fuzz/corpus. Prints a line per reader: executions, coverage, finds.
#   sh fuzz/campaign.sh BUILD [READER|all] [SECONDS]
set -eu
program=$1/stepcast_fuzz
cd "$(dirname "$0")/.."
wanted=${2:-all}
seconds=${3:-20}
work=build/fuzz
[ "$wanted" = all ] && wanted=$("$1/stepcast_replay" --list)
failed=0
printf '%-18s %12s %8s %8s %6s\n' reader executions edges corpus finds
for reader in $wanted; do
  corpus=$work/corpus/$reader
  mkdir -p "$corpus" "$work/finds" "$work/seeds/$reader"
  kept=fuzz/corpus/$reader
  [ -d "$kept" ] || kept=
  sh fuzz/seeds.sh "$reader" | while read -r file; do
    cp "$file" "$work/seeds/$reader/$(echo "$file" | tr / _)"
  done
  dictionary=fuzz/dictionaries/$reader.dict
  [ -f "$dictionary" ] && dictionary=-dict=$dictionary || dictionary=
  log=$work/$reader.log
  status=0
  # shellcheck disable=SC2086  # none of these may be one empty word
  "$program" "$reader" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=65536 \
    -print_final_stats=1 $dictionary -artifact_prefix="$work/finds/$reader-" \
    "$corpus" "$work/seeds/$reader" $kept >"$log" 2>&1 || status=$?
  finds=$(find "$work/finds" -name "$reader-*" | wc -l)
  printf '%-18s %12s %8s %8s %6s\n' "$reader" \
    "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1)" \
    "$(grep -o 'cov: [0-9]*' "$log" | tail -1 | cut -c6-)" "$(find "$corpus" -type f | wc -l)" "$finds"
  if [ $status -ne 0 ]; then
    failed=1
    grep -m 4 -E 'ERROR|SUMMARY|terminate|what\(\)' "$log" | sed 's/^/    /' || true
  fi
done
exit $failed
