#!/bin/sh
# No shell is started by a program; what a terminal is told goes through tell() where names may be in
# it (sim/files/printable.hpp), what is written through WholeFile, which follows no link, and JSON
# through json_text(), which takes any name.
#   ways_out.sh [TREE]
set -eu
cd "${1:-$(dirname "$0")/../..}"
folders=
for folder in engine topology workloads sim calibrate validate; do
  [ ! -d $folder ] || folders="$folders $folder"
done
status=0
# none PATTERN WHY BUT: no source has it, but for lines that match BUT
none() {
  # shellcheck disable=SC2086
  found=$(grep -rnE "$1" --include='*.cpp' --include='*.hpp' --include='*.cu' $folders |
    grep -v "$3" || true)
  [ -z "$found" ] || { printf '%s\n%s\n' "$2:" "$found"; status=1; }
}
none '(^|[^.>_[:alnum:]])(system|popen|execl[pe]?)\([^)]' "a shell, or a program without a list of words" '^$'
none '(^|[^n])(fputs|puts|printf|fmt::print)\(.*(c_str\(\)|what\(\))' "not told by tell()" '^$'
none '(std::ofstream|fopen)[ (]' "not written by WholeFile (sim/files/whole_file.hpp)" \
  '^sim/files/whole_file.cpp:\|"/proc/sys/'
none '\.dump\(' "JSON that ends at the first byte that is no UTF-8, not json_text()" \
  '^sim/files/json_text.cpp:'
exit $status
