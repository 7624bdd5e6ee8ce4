#!/bin/sh
# validate confidence: the shipped residuals are what the command writes now, to the byte. Where this
# fails because forecasts have moved: stepcast-validate confidence --write scenarios/confidence
#   confidence.sh PROGRAMS
set -eu
programs=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "confidence.sh: $1"
  exit 1
}

"$programs/stepcast-validate" confidence --write "$work/new" >"$work/fresh"
for file in steps memory collectives pairs; do
  diff "$root/scenarios/confidence/$file.csv" "$work/new/$file.csv" >"$work/difference" ||
    fail "$file.csv is stale, write it anew: $(wc -l <"$work/difference") lines differ"
done
[ "$(grep shift "$root/scenarios/confidence/origin.toml")" = "$(grep shift "$work/new/origin.toml")" ] ||
  fail "the shift is stale"

"$programs/stepcast-validate" confidence >"$work/text"
grep -q '^steps: .* at worst' "$work/text" || fail "the worst source is not named"
code=0
"$programs/stepcast-validate" confidence --confidence 80 2>"$work/error" || code=$?
[ "$code" = 2 ] || fail "a level of 80 gives exit code $code"
