#!/bin/sh
# validate confidence: the shipped residuals are what the command writes now, to the byte. Where this
# fails because forecasts have moved: stepcast-validate confidence --write scenarios/confidence
#   confidence.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
programs=$1
root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"

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

# A user's own runs move the bar; the forecast stays.
cat >"$work/own.toml" <<'EOF'
[model]
name = "llama2-7b"
sequence = 4096
[cluster]
node = "dgx-h100"
nodes = 2
[plan]
data = "zero2"
[batch]
local = 2
[calibration]
runs = ["mine.csv"]
EOF
printf 'gpus,global_batch_seqs,step_time_s\n8,16,1.05\n16,32,1.06\n16,32,1.04\n' >"$work/mine.csv"
"$programs/stepcast" run "$work/own.toml" --json >"$work/own.json"
sed -i '/calibration/d; /runs/d' "$work/own.toml"
"$programs/stepcast" run "$work/own.toml" --json >"$work/plain.json"
"$python" - "$work" <<'EOF' || fail "own runs do not move the bar as documented"
import json, sys
own, plain = (json.load(open(f"{sys.argv[1]}/{name}.json")) for name in ("own", "plain"))
assert own["step_time_s"] == plain["step_time_s"]
assert own["confidence"]["own_runs"] == 3 and plain["confidence"]["own_runs"] == 0
assert own["step_time_high_s"] > plain["step_time_high_s"], (own, plain)
width = lambda r: r["step_time_high_s"] / r["step_time_low_s"]
assert width(own) < width(plain)
EOF
code=0
"$programs/stepcast" run "$work/own.toml" --confidence 0.99 >/dev/null 2>"$work/error" || code=$?
[ "$code" = 3 ] || fail "a level that no sources allow gives exit code $code"

# Plans of one model, cluster and batch: how sure their order is, and what that rests on.
printf '[sweep]\n"plan.tensor" = [1, 2]\n' >>"$work/own.toml"
sed -i 's/zero2/zero1/' "$work/own.toml"
"$programs/stepcast" sweep "$work/own.toml" --quiet --framework megatron-core --ignore-memory >"$work/sweep"
grep -q 'P(first)' "$work/sweep" || fail "no P(first) beside two plans: $(cat "$work/sweep")"
grep -q 'sources that weigh alike, [0-9.]* % of them of' "$work/sweep" || fail "its pairs are not told"
