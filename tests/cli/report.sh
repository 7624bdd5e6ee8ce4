#!/bin/sh
# Pages to hand on: what stands on them, what is escaped, what is refused, and the pictures as files.
#   report.sh FOLDER_OF_PROGRAMS SOURCE
set -u
program=$1/stepcast
source=$2
. "$source/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
html() {
  "$python" "$source/tests/cli/shared/read_page.py" html "$@" || fail "the page: $*"
}
has() {
  grep -q -e "$2" "$1" || fail "$1 does not say \"$2\""
}
cd "$work" || exit 1
dense="--model llama2-7b --gpu h100 --nodes 2 --local-batch 2"

# One step: the first screen for whoever pays, the same figures as stepcast run prints.
expect 0 'r.html' report $dense --tokens 1T --out r.html --svg pictures
html r.html
days=$("$program" run $dense --tokens 1T | sed -n 's/^  time  *\([0-9.]* days\) .*/\1/p')
has r.html "whole run</dt><dd class=\"value\">$days</dd>"
for text in 'cost</dt>' 'tokens a day' 'energy</dt>' 'Plan: zero2' 'What limits it' 'Confidence: 80 %' \
  'alternative 3' 'Critical path' 'Memory per GPU against' 'What the times rest on' 'Proof: ' \
  'gpus/h100-sxm5-80gb' 'Resolved scenario' 'stepcast report --model' 'A row to copy'; do
  has r.html "$text"
done
[ "$(wc -c <r.html)" -lt 300000 ] || fail "r.html has $(wc -c <r.html) bytes"

# Every chart as a file that an XML parser reads, as many as the page has.
[ "$(ls pictures/*.svg | wc -l)" -eq "$(grep -c '<figure ' r.html)" ] || fail "pictures: $(ls pictures)"
for picture in pictures/*.svg; do
  "$python" -c 'import sys, xml.dom.minidom as m
assert m.parse(sys.argv[1]).documentElement.getElementsByTagName("title")' "$picture" ||
    fail "$picture is no SVG with a title"
done

# A model named <script> is text, on the page and in its pictures.
"$program" run $dense --out plain --quiet >/dev/null
sed 's/^name = "llama2-7b"/name = "<script>hacked=1<\/script>"/' plain/scenario.toml >evil.toml
grep -q 'script' evil.toml || fail "no model was renamed"
expect 0 'evil.html' report evil.toml --no-alternatives --out evil.html
has evil.html '&lt;script&gt;hacked=1'
! grep -q '<script>hacked' evil.html || fail "a model's name is a script"
html evil.html

# With a pipeline: its Gantt, stages apart, parts that add up (checked by the reader).
expect 0 'p.html' report --model llama2-13b --gpu h100 --nodes 2 --tensor 4 --pipeline 4 \
  --global-batch 64 --no-alternatives --out p.html
html p.html
has p.html 'Pipeline: one rank of each stage'
has p.html '<td class="left">stage 3</td>'
has p.html 'No goal is given'

# On other verbs; kept results say what they lack, those of --out are computed anew.
expect 0 'where the step goes' run $dense --report run.html --no-alternatives --quiet
expect 0 'Power caps' sweep "$source/scenarios/power_caps.toml" --report sweep.html --svg caps --quiet
has sweep.html 'All points'
for text in 'step, s; least at 700 W' 'power per GPU, W; least at 300 W' 'tokens/J; most at 400 W'; do
  has caps/over_key.svg "$text"
done
expect 0 'optimal\|best found' search --model llama2-7b --gpu h100 --nodes 2 --global-batch 64 \
  --limit 12 --report search.html --svg searched --quiet
has search.html 'Plans: step against memory'
[ -f searched/plans.svg ] || fail "no picture of the plans"
expect 0 'P(order)' compare --model llama2-7b --nodes 2 --local-batch 2 --gpu a100,h100 \
  --report compare.html --svg compared --quiet
has compare.html 'From the first to the last'
[ -f compared/difference.svg ] || fail "no picture of the comparison"
"$program" run $dense --json >kept.json
expect 0 'kept.html' report kept.json --out kept.html
has kept.html 'Not on this page: the critical path'
expect 0 'again.html' report plain --no-alternatives --out again.html
has again.html 'Critical path'
expect 0 'two.html' report kept.json plain --out two.html
"$program" search --model llama2-7b --gpu h100 --nodes 2 --global-batch 64 --limit 12 --quiet \
  --out found >/dev/null
expect 0 'found.html' report found --out found.html
has found.html 'As it was printed'
expect 0 'step' compare found/search.json#1 found/search.json#2
expect 3 'plans of a search' compare found/search.json plain
html found.html
html run.html sweep.html search.html compare.html kept.html again.html two.html

# The pages of points have their inputs, what limits the fastest and how sure that is.
for page in sweep.html compare.html; do
  for text in 'What limits it, of ' 'Confidence, of .*: in 80 %' 'Every input' 'gpus/h100-sxm5-80gb'; do
    has $page "$text"
  done
done
has kept.html 'What limits it: '
# Measured beside predicted.
validate=$1/stepcast-validate
for words in "goodput" "layers" "collectives $source/calibrate/published/collectives.csv" \
  "kernels $source/calibrate/published/kernels.csv" "published mlgv --quiet"; do
  name=validate_${words%% *}
  # shellcheck disable=SC2086  # words
  "$validate" $words --report "$name.html" --svg "$name" >/dev/null || fail "validate $words"
  html "$name.html"
  [ -f "$name/predicted_measured.svg" ] || fail "validate $words: no picture"
done
has validate_goodput.html 'median factor'

# STEPCAST_CHECK=whole: the pictures that the pages of docs/ show are those that their commands write.
if [ "${STEPCAST_CHECK:-}" = whole ]; then
  # shellcheck source=tests/cli/shared/pictures.sh
  . "$source/tests/cli/shared/pictures.sh"
  mkdir shown
  pictures "$program" "$source" shown || fail "the pictures of docs/: $(cat shown/said)"
  for picture in "$source"/docs/report/*.svg; do
    cmp "$picture" "shown/${picture##*/}" || fail "docs/report/${picture##*/} is another picture"
  done
fi

# Refusals: of others' files, of what has no effect, of a plan that does not fit.
echo mine >mine.html
expect 3 'is no report of stepcast' report kept.json --out mine.html
[ "$(cat mine.html)" = mine ] || fail "a file of the user's was written over"
expect 0 'kept.html' report kept.json --out kept.html
expect 7 'nowhere' report kept.json --out nowhere/at/all.html
expect 2 'a result is what it is' report kept.json --tensor 2
expect 2 'no-alternatives' report kept.json --no-alternatives
expect 2 'no-alternatives' run $dense --no-alternatives
expect 2 'of training steps' run "$source/scenarios/collectives.toml" --report c.html
expect 4 'big.html' report --model llama2-70b --gpu h100 --nodes 1 --local-batch 8 --out big.html
has big.html 'This plan does not run'

exit $((failures > 0))
