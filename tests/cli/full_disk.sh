#!/bin/sh
# Every writer that is not slow on a disk that is full or fails, STEPCAST_CHECK=whole: all on three
# (tests/faults/disks.py says what holds; ./dev faults disks tries every disk).
#   full_disk.sh FOLDER_OF_PROGRAMS SOURCE
set -u
programs=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"
# shellcheck source=tests/cli/shared/signals.sh
. "$2/tests/cli/shared/signals.sh"
how="--draw 1 --quick"
[ "${STEPCAST_CHECK:-}" = whole ] && how="--draw 3"
# shellcheck disable=SC2086  # words
"$python" "$2/tests/faults/disks.py" "$programs" "$2" $how
