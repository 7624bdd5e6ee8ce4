#!/bin/sh
# Names of models, nodes and files, titles and logs may hold anything: nothing of them is run, and no
# output gives them a meaning in HTML, SVG, Graphviz, CSV or on a terminal.
#   hostile_names.sh FOLDER_OF_PROGRAMS SOURCE
set -u
programs=$1 source=$2
stepcast=$programs/stepcast
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
fail() {
  echo "FAILED: $*"
  failed=1
}

# As TOML and JSON spell it: a formula's sign, then shell, markup, quotes and a terminal's words.
toml='=cmd()$(touch executed)`touch executed`;touch executed <script>x</script> '
toml=$toml'\"&'\''\\ \u001b[31m\u0007\u009b\u202e'
folder=$(printf 'a $(touch executed) `touch executed` <script>"&=@\033[31m\nend')
mkdir "$folder"

sed 's/^name = .*/name = "MODEL"/' "$source/scenarios/models/llama2-1b.toml" >model
sed 's/^name = .*/name = "MODEL"/' "$source/scenarios/nodes/dgx-h100.toml" >node
named() {
  NAME=$toml awk '{
    at = index($0, "MODEL")
    print at ? substr($0, 1, at - 1) ENVIRON["NAME"] substr($0, at + 5) : $0
  }' "$1"
}
named model >"$folder/m.toml"
named node >"$folder/n.toml"
cat >scenario <<END
title = "MODEL"
[model]
name = "m.toml"
[cluster]
node = "n.toml"
nodes = 1
[plan]
data = "zero2"
[batch]
local = 1
END
named scenario >"$folder/s.toml"
{
  cat "$folder/s.toml"
  printf '[sweep]\n"cluster.nodes" = [1, 2]\n'
} >"$folder/w.toml"

# run CODE ARGUMENT...: the exit code, and nothing raw in what is printed
number=0
run() {
  code=$1
  shift
  number=$((number + 1))
  what="$number, ${1##*/} $2"
  "$@" >"printed.$number" 2>"told.$number"
  got=$?
  [ $got -eq "$code" ] || { fail "exit code $got, not $code: $what" && head -c 500 "told.$number" | cat -v; }
  for said in printed told; do
    if LC_ALL=C tr -d '\n\t' <"$said.$number" | LC_ALL=C grep -q '[[:cntrl:]]'; then
      fail "$what: prints a control character"
    fi
    if LC_ALL=C grep -q "$(printf '\302\233\|\342\200\256')" "$said.$number"; then
      fail "$what: prints U+009B or U+202E"
    fi
  done
}

mkdir out
s=$folder/s.toml w=$folder/w.toml
run 0 "$stepcast" run "$s" --report out/run.html --svg out/svg --csv out/run.csv --json \
  --timeline out/t.json --out "$folder/out" --memory-timeline out/memory.svg
run 0 "$stepcast" run "$s"
run 0 "$stepcast" run "$s" --csv -
run 0 "$stepcast" run "$w" --report out/sweep.html --csv out/sweep.csv --out "$folder/sweep"
run 0 "$stepcast" sweep "$w" --print-slurm 2 --out 'a $(touch executed) `touch executed`'
run 2 "$stepcast" sweep "$w" --print-slurm 2 --out "$(printf 'a\ntouch executed')"
run 0 "$stepcast" report "$s" --out out/report.html
run 0 "$stepcast" compare "$s" "$folder/out/results.json" --report out/compare.html --svg out/c.svg --csv out/c.csv
run 0 "$stepcast" why "$s" --csv out/why.csv --timeline out/why.json
run 0 "$stepcast" goodput "$s"
run 0 "$stepcast" show cluster "$s" --graphviz out/cluster.dot
run 0 "$stepcast" show cluster "$s"
run 0 "$stepcast" export "$s" --chakra "$folder/chakra"
run 0 "$stepcast" launch "$s" --framework pytorch-fsdp2 --out "$folder/launch"
run 0 "$stepcast" search "$s" --top 2 --quiet --report out/search.html --csv out/search.csv
run 3 "$stepcast" run "$folder/none$(printf '\377\033]0;x\007')"
run 3 "$stepcast" run "$folder/none$(printf '\377\033]0;x\007')" --json
run 2 "$stepcast" "$(printf '\033[31m')"
printf '{"%s": 1}' "$toml" >"$folder/config.json"
run 3 "$stepcast" import-model "$folder/config.json"
printf '[model]\nname = "%s"\n' "$toml" >"$folder/bad.toml"
run 3 "$stepcast" run "$folder/bad.toml"
printf '0: \033[31m$(touch executed) NCCL INFO\n' >"$folder/log"
run 3 "$programs/stepcast-calibrate" import "$folder/log"
run 3 "$programs/stepcast-validate" trace "$folder/log"

# Files: control characters in none but the Chakra traces, which are binary; markup in no page.
for file in out/*.* out/svg/* "$folder"/out/*.json "$folder"/out/*.toml "$folder"/sweep/*.json* "$folder"/launch/*; do
  [ -f "$file" ] || continue
  LC_ALL=C tr -d '\n\t' <"$file" | LC_ALL=C grep -q '[[:cntrl:]]' && fail "$file has a control character"
done
for file in out/*.html out/svg/*.svg out/*.svg; do
  [ -f "$file" ] || fail "no $file"
  grep -q '<script>x' "$file" && fail "$file has the name's markup"
done
grep -q '&lt;script&gt;x' out/run.html || fail "out/run.html lacks the name"
for file in out/*.csv; do
  grep -qE '(^|,)"?[=@]' "$file" && fail "$file has a formula"
done
grep -q "'=cmd()" out/run.csv out/sweep.csv out/search.csv || fail "no CSV has the name"
grep -q '\\"&' out/cluster.dot || fail "out/cluster.dot lacks the name's quote, escaped"
if command -v dot >/dev/null 2>&1; then dot -Tsvg out/cluster.dot >/dev/null || fail "dot cannot read it"; fi
[ -d "$folder/launch" ] && for file in "$folder"/launch/*.sh; do
  [ -f "$file" ] && { sh -n "$file" || fail "$file does not parse"; }
done
ran=$(find . -name executed)
[ -z "$ran" ] || fail "a name was run: $ran"
exit $failed
