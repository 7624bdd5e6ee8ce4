#!/bin/sh
# Every writer on a disk that is full or fails, STEPCAST_CHECK=whole: on three (tests/faults/disks.py
# says what holds; ./dev faults disks tries them all).
#   full_disk.sh FOLDER_OF_PROGRAMS SOURCE
set -u
programs=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"
# shellcheck source=tests/cli/shared/signals.sh
. "$2/tests/cli/shared/signals.sh"
disks=1
[ "${STEPCAST_CHECK:-}" = whole ] && disks=3
"$python" "$2/tests/faults/disks.py" "$programs" "$2" --draw $disks
