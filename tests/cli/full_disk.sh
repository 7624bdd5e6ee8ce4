# Every writer on three disks that are full or fail (tests/faults/disks.py says what holds; ./dev
# faults disks tries them all).
# Usage: full_disk.sh FOLDER_OF_PROGRAMS SOURCE_FOLDER
[ -e "$1/failing_files.so" ] || { echo "skipped: failing_files.so is not built"; exit 77; }
exec python3 "$2/tests/faults/disks.py" "$1" "$2" --draw 3
