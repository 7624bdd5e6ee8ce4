#!/bin/sh
# Every program that was built has what hardening.cmake asks for: addresses that differ from run to
# run, tables of them that nobody writes to, no executable stack, checked stacks and strings.
#   hardening.sh FOLDER_OF_PROGRAMS
set -eu
command -v readelf >/dev/null 2>&1 || { echo "no readelf"; exit 77; }
! grep -q 'fsanitize' "$1/CMakeCache.txt" || { echo "sanitizers check more themselves"; exit 77; }
fortified=$(sed -n 's/^STEPCAST_FORTIFIES:.*=//p' "$1/CMakeCache.txt")
protected=$(sed -n 's/^STEPCAST_HAS_fstack_protector_strong:.*=//p' "$1/CMakeCache.txt")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
programs=0
lacks() {
  echo "$1: $2"
  status=1
}
for file in "$1"/stepcast "$1"/stepcast-* "$1"/*stepcast*.so "$1"/python/stepcast/*.so; do
  [ -f "$file" ] || continue
  case $file in *.json) continue ;; esac
  programs=$((programs + 1))
  readelf -hldW "$file" >"$work/head"
  readelf --dyn-syms -W "$file" >"$work/symbols"
  grep -q 'Type: *DYN' "$work/head" || lacks "$file" "not position-independent"
  grep -q 'GNU_RELRO' "$work/head" || lacks "$file" "no RELRO"
  grep -qE 'BIND_NOW|FLAGS.* NOW' "$work/head" || lacks "$file" "binds lazily: RELRO is not full"
  grep -qE 'GNU_STACK.* RW +0x' "$work/head" || lacks "$file" "its stack can be executed"
  # Programs of a few lines over libstepcast.so have no array on the stack, and call nothing that
  # is checked.
  case $file in */stepcast | */stepcast-table | */stepcast-sweep) [ ! -f "$1/libstepcast.so" ] || continue ;; esac
  [ -z "$protected" ] || grep -q '__stack_chk_fail' "$work/symbols" ||
    lacks "$file" "no stack protector"
  case $file in
    */stepcast | */libstepcast.so | *-validate | *-calibrate | *-trainer)
      [ -z "$fortified" ] || grep -v __stack_chk "$work/symbols" | grep -qE ' __[a-z]+_chk' ||
        lacks "$file" "no checked call of libc (_FORTIFY_SOURCE)"
      ;;
  esac
done
[ "$programs" -gt 0 ] || { echo "no program in $1"; exit 77; }
exit $status
