#!/bin/sh
# Runs the tests of a preset, one more at once than there are cores, since some only wait. One that
# fails is run once more, alone; one that needed it is printed as `flaky: NAME` at the end. The limit
# of a test's time grows with what a loop takes now: on a crowded machine, and under a sanitizer.
#   suite.sh PRESET [ctest options]
set -eu
cd "$(dirname "$0")/../.."
preset=$1
shift
# shellcheck source=tests/cli/shared/patience.sh
. tests/cli/shared/patience.sh
seconds=600
[ "$preset" = release ] || seconds=1800
[ "${STEPCAST_CHECK:-}" != whole ] || seconds=1800
limit=$(patience $seconds)
jobs=$(($(nproc 2>/dev/null || echo 2) + 1))
failed=build/$preset/Testing/Temporary/LastTestsFailed.log

rm -f "$failed"
ctest --preset "$preset" -j "$jobs" --timeout "$limit" "$@" && exit 0
[ -s "$failed" ] || exit 1  # no test ran

names=$(sed 's/^[0-9]*://' "$failed")
flaky=
red=
for name in $names; do
  echo "suite: $name once more, alone"
  pattern=$(printf '%s' "$name" | sed 's/[.+*]/\\&/g')
  if ctest --preset "$preset" --timeout "$limit" -R "^$pattern\$"; then
    flaky="$flaky $name"
  else
    red="$red $name"
  fi
done
for name in $flaky; do echo "flaky: $name"; done
for name in $red; do echo "failed: $name"; done
[ -z "$red" ]
