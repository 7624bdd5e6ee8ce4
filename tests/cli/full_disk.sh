# Every writer on a disk that is full after n bytes (tests/cli/shared/full_disk.py says what holds).
# Usage: full_disk.sh FOLDER_OF_PROGRAMS SOURCE_FOLDER
command -v prlimit >/dev/null 2>&1 || { echo "skipped: no prlimit on PATH"; exit 77; }
exec python3 "$2/tests/cli/shared/full_disk.py" "$1" "$2"
