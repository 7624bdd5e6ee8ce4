#!/bin/sh
# format.sh check: fails naming each place that clang-format 14 (.clang-format) would change.
# format.sh fix:   changes it.
set -eu
cd "$(dirname "$0")/../.."

# Other releases break lines elsewhere: only 14, Debian 12's, decides.
clang_format=
for name in clang-format-14 clang-format; do
  if command -v "$name" >/dev/null 2>&1; then
    case "$("$name" --version)" in *" version 14."*) clang_format=$name ;; esac
  fi
done
if [ -z "$clang_format" ]; then
  echo "format: not checked, clang-format 14 is not installed"
  exit 77
fi

sources() {
  find engine topology workloads sim calibrate validate tests -type f \
    \( -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print 2>/dev/null
}
[ -n "$(sources)" ] || { echo "format: found no sources"; exit 1; }

case ${1:-} in
  check) sources | xargs "$clang_format" --dry-run -Werror ;;
  fix) sources | xargs "$clang_format" -i ;;
  *) echo "usage: format.sh check|fix" >&2; exit 2 ;;
esac
