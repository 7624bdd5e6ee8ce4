#!/bin/sh
# Reports in headless Chromium: offline, no console error, no request, two widths, names for who does
# not see, every control by Tab, contrast.
#   report_page.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
[ "${STEPCAST_CHECK:-}" = whole ] || { echo "skipped: of ./dev check"; exit 77; }
stepcast=$1/stepcast
source=$2
chromium=$(command -v chromium) || {
  echo "skipped: no chromium (./dev check installs it)"
  exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"
# shellcheck source=tests/cli/shared/patience.sh
. "$2/tests/cli/shared/patience.sh"
"$stepcast" report --model llama2-13b --gpu h100 --nodes 2 --tensor 4 --pipeline 4 \
  --global-batch 64 --tokens 1T --set "title=<script>hacked=1</script>" \
  --out "$work/step.html" >/dev/null
"$stepcast" compare --model llama2-7b --nodes 1 --local-batch 1 --gpu a100,h100 \
  --report "$work/compare.html" --quiet >/dev/null
"$stepcast" sweep "$source/scenarios/power_caps.toml" \
  --report "$work/sweep.html" --quiet >/dev/null
"$stepcast" design "$source/scenarios/design/llama3-70b-2t.toml" \
  --report "$work/design.html" --quiet >/dev/null
"$1/stepcast-validate" goodput --report "$work/goodput.html" >/dev/null
timeout "$(patience 300)" "$python" "$source/tests/cli/shared/read_page.py" browser "$chromium" \
  "$work/step.html" "$work/compare.html" "$work/sweep.html" "$work/design.html" \
  "$work/goodput.html"
