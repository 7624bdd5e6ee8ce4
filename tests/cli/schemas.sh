#!/bin/sh
# Every JSON document has a schema (stepcast show schema NAME) and keeps to it: an answer of every
# verb, in its rarer forms too, what --out writes, and the errors. Spoilt documents are refused.
#   schemas.sh FOLDER_OF_PROGRAMS SOURCE [TEST...]   also all JSON that tests/cli/TEST.sh makes
set -u
programs=$1
source=$2
shift 2
# shellcheck source=tests/cli/shared/python.sh
. "$source/tests/cli/shared/python.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/schemas" "$work/made" "$work/bin" "$work/said"
failures=0

for name in $("$programs/stepcast" show schema); do
  "$programs/stepcast" show schema "$name" >"$work/schemas/$name.json" || exit 1
done

number=0
# made WORD...: keeps what a command prints. Some end with an exit code of their own.
made() {
  written "$@"
  ! grep -q '"schema": *"error/' "$work/made/$number.json" ||
    { echo "an error: $*"; cat "$work/made/$number.json"; failures=1; }
}
# The same of one that may be an error.
written() {
  number=$((number + 1))
  "$programs/stepcast" "$@" --json --quiet >"$work/made/$number.json" 2>"$work/errors" ||
    "$programs/stepcast" "$@" --json >"$work/made/$number.json" 2>"$work/errors"
  [ -s "$work/made/$number.json" ] || { echo "no JSON: $*"; cat "$work/errors"; failures=1; }
}

small="--model llama3-8b --gpu h100 --nodes 1 --data zero3 --local-batch 1"
dense="--model llama2-70b --gpu h100 --nodes 4 --tensor 8 --pipeline 4 --global-batch 32"
# shellcheck disable=SC2086  # lists of words
{
  made run $small
  made run $small --set run_goal.tokens=1B
  made run $small --set noise.kernel_sigma=0.02 --set failures.spares=2
  made run --model llama2-70b --gpu h100 --nodes 1 --data ddp --local-batch 1 # refused
  made run --model mixtral-8x7b --gpu h100 --nodes 4 --expert 8 --framework megatron-core --data zero1 \
    --local-batch 1
  written run --model no-such-model --gpu h100
  made collective all_reduce --gpu h100 --nodes 4 --bytes 1GiB --explain
  made collective all_reduce --gpu h100 --nodes 2 --bytes 64MiB --stepped
  made sweep "$source/scenarios/collectives.toml"
  made why $dense
  made why $small --set run_goal.tokens=1B --set failures.spares=2
  made compare $small --what-if "gpu.memory_bandwidth x2" --what-if plan.recompute=none
  made compare --gpu a100,h100 --model llama3-8b --nodes 1 --data zero3 --local-batch 1
  made goodput "$source/scenarios/failures_llama3.toml"
  made search --model llama2-7b --gpu h100 --nodes 1 --global-batch 16 --limit 8
  made search $small --fix plan.data=zero3 --fix plan.recompute=none --limit 4 --out "$work/plans"
  made search --out "$work/plans" --status
  made design "$source/scenarios/design/llama3-70b-2t.toml" --time 3s
  made calibrate card "$source/tests/calibrate/fixtures/all_reduce_slow_a100_8.log"
  made export $small --chakra "$work/traces"
  made replay "$work/traces" --gpu h100 --nodes 1
  made sweep "$source/scenarios/collectives.toml" --out "$work/points"
  made sweep --out "$work/points" --status
}
cp "$work/points/results.json" "$work/made/results.json"
cp "$work/plans/search.json" "$work/made/search.json"

# What other tests print with --json, by programs of the same names that keep it.
for test in "$@"; do
  for program in "$programs"/*; do
    name=${program##*/}
    [ -f "$program" ] && [ -x "$program" ] && case $name in *.so*) false ;; esac || {
      ln -sf "$program" "$work/bin/$name"
      continue
    }
    cat >"$work/bin/$name" <<WRAPPER
#!/bin/sh
case " \$* " in
  *" --json "*)
    said=\$(mktemp "$work/said/XXXXXX")
    "$program" "\$@" >"\$said"
    code=\$?
    cat "\$said"
    [ \$code -lt 128 ] || rm -f "\$said" # it was ended half way
    exit \$code ;;
esac
exec "$program" "\$@"
WRAPPER
    chmod +x "$work/bin/$name"
  done
  sh "$source/tests/cli/$test.sh" "$work/bin" "$source" >"$work/log" 2>&1 ||
    echo "note: $test fails behind wrappers"
  for file in "$work/said"/*; do
    [ -s "$file" ] && cp "$file" "$work/made/$test.${file##*/}.json"
  done
  rm -f "$work/said"/*
done

"$python" "$source/tests/cli/shared/check_schema.py" "$work/schemas" "$work/made"/*.json ||
  failures=1
"$python" "$source/tests/cli/shared/check_schema.py" "$work/schemas" --seeded \
  "$work/made"/[0-9]*.json || failures=1
echo "$(find "$work/made" -name '*.json' | wc -l) documents, $(find "$work/schemas" -name '*.json' | wc -l) schemas"
exit $failures
