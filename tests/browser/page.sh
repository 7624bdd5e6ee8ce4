#!/bin/sh
# stepcast.html in a headless browser, from file://: its answers are the program's JSON; in Chromium
# also that no request leaves, state survives, 400 px, keyboard, contrast, time.
#   [BROWSER=chromium] page.sh FOLDER_OF_PROGRAMS SOURCE [FOLDER_FOR_PICTURES]
set -eu
stepcast=$1/stepcast
browser=$(command -v "${BROWSER:=chromium}") || { echo "skipped: no $BROWSER (./dev check)"; exit 77; }
[ -f "$1/stepcast_page.html" ] || { echo "skipped: not built for the browser (./dev page)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"
# shellcheck source=tests/cli/shared/patience.sh
. "$2/tests/cli/shared/patience.sh"
"$stepcast" page --model llama3-8b --gpu h100 --gpus 64 --data zero3 --local-batch 1 \
  --out "$work/stepcast.html" >/dev/null
"$stepcast" report --live --model llama2-7b --gpu a100 --gpus 64 --data zero2 --local-batch 2 \
  --out "$work/live.html" >/dev/null
CROWD=$(patience 100) PYTHONPATH=$2/tests/cli/shared timeout "$(patience 300)" \
  "$python" "$2/tests/browser/page.py" "$browser" "$stepcast" "$work/stepcast.html" ${3:+"$3"}
