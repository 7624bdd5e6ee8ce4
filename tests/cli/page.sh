#!/bin/sh
# stepcast page fills the shell beside the program: catalogue, question, choices; without a shell it
# says how to build one. stepcast report --live does so with a report that is open.
#   page.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"
fail() {
  echo "$1"
  exit 1
}
export STEPCAST_DATA="$2/scenarios"
cp "$1/stepcast" "$1/published.columns" "$work/"  # the program looks beside itself
stepcast=$work/stepcast
cd "$work"

code=0
"$stepcast" page 2>error || code=$?
[ $code -eq 3 ] || fail "without a shell: exit code $code"
grep -q "stepcast_page.html: .*build it with ./dev page" error || fail "without a shell: $(cat error)"

printf '<!DOCTYPE html>\n<meta name="generator" content="stepcast">\n<script>%s</script>\n' \
  '{"data":"of stepcast page"}' >stepcast_page.html
"$stepcast" page --model llama3-8b --gpu h100 --gpus 64 --data zero3 --local-batch 1 \
  --out plain.html >/dev/null
"$stepcast" page "$2/scenarios/compare/tensor_8.toml" --global-batch 512 \
  --set "title=</script>" --out scenario.html >/dev/null
"$stepcast" report --model llama3-8b --live --gpu h100 --gpus 64 --data zero3 --local-batch 1 \
  --out live.html >/dev/null
"$python" - "$2" <<'PYTHON'
import base64, gzip, json, os, sys

def data(path):
    text = open(path).read()
    assert text.count("</script>") == 1, path
    return json.loads(text[text.index("<script>") + 8:text.index("</script>")])

plain, scenario, live = data("plain.html"), data("scenario.html"), data("live.html")
assert plain["words"] == ("--model llama3-8b --gpu h100 --gpus 64 --data zero3 "
                          "--local-batch 1").split(), plain["words"]
assert live["words"] == plain["words"] and live["report"] and not plain["report"]
assert plain["scenario"] == "" and scenario["words"] == ["/scenario.toml"]
assert "global = 512" in scenario["scenario"] and "</script>" in scenario["scenario"]
assert "zero3" in plain["choices"]["data"] and "llama3-8b" in plain["choices"]["model"]
assert abs(plain["memory_gib"]["h100-sxm5-80gb"] - 79.1) < 0.1
packed = gzip.decompress(base64.b64decode(plain["files"], validate=True))
sizes, at = json.loads(packed[:packed.index(b"\n")]), packed.index(b"\n") + 1
for name, size in sizes.items():
    path = name.replace("/stepcast/scenarios", sys.argv[1] + "/scenarios") \
               .replace("/stepcast/published.columns", "published.columns")
    assert packed[at:at + size] == open(path, "rb").read(), name
    at += size
assert at == len(packed) and len(sizes) > 200
os.remove("plain.html")
PYTHON

echo mine >mine.html
! "$stepcast" page --out mine.html 2>error || fail "another's file is written over"
grep -q "is no report of stepcast" error || fail "another's file: $(cat error)"
"$stepcast" page --out scenario.html >/dev/null || fail "an earlier page is not replaced"
code=0
"$stepcast" page --model llama9-8b --gpu h100 2>error || code=$?
[ $code -eq 3 ] || fail "a question that is refused: exit code $code"
# refused CODE SENTENCE WORD...
refused() {
  wanted=$1 sentence=$2 code=0
  shift 2
  "$stepcast" "$@" 2>error || code=$?
  [ $code -eq "$wanted" ] && grep -q -e "$sentence" error || fail "$*: exit code $code, $(cat error)"
}
for verb in page 'report --live'; do
  # shellcheck disable=SC2086  # verb and option
  refused 3 'has a \[sweep\], and a page opens with one question' $verb "$2/scenarios/weak_scaling.toml"
done
refused 2 "--svg is of a report that stands still" report --model llama3-8b --gpu h100 --live --svg x
refused 2 "a live report is of one step" report --live a.toml b.toml
echo "page: $(wc -c <scenario.html) bytes"
