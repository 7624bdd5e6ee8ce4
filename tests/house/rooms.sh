#!/bin/sh
# Every room (a folder of sources below a top folder) has a README of 8 to 12 lines, in which every file
# that is named exists, and no folder holds more than 45 sources.
set -eu
cd "$(dirname "$0")/../.."

status=0
fail() {
  echo "$1"
  status=1
}

sources_in() {
  find "$1" -maxdepth 1 -type f \( -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \)
}

rooms=0
for folder in $(find engine topology workloads sim calibrate validate -type d | sort); do
  count=$(sources_in "$folder" | wc -l)
  [ "$count" -gt 0 ] || continue
  [ "$count" -le 45 ] || fail "$folder: $count sources lie flat, build a room"
  case $folder in */*) ;; *) continue ;; esac
  rooms=$((rooms + 1))
  readme=$folder/README.md
  if [ ! -f "$readme" ]; then
    fail "$folder: no README.md"
    continue
  fi
  lines=$(wc -l <"$readme")
  [ "$lines" -ge 8 ] && [ "$lines" -le 16 ] || fail "$readme: $lines lines, should be about 8 to 12"
  for name in $(grep -oE '`[A-Za-z0-9_./-]+\.(hpp|cpp|cu|cuh|toml|csv|cmake|sh)`' "$readme" | tr -d '`'); do
    [ -e "$folder/$name" ] || [ -e "$name" ] || fail "$readme: there is no $name"
  done
done
[ "$rooms" -gt 0 ] || fail "found no room"
exit $status
