#!/bin/sh
# Every script of the tree parses, and shellcheck, where it is installed, has nothing to say.
set -eu
cd "$(dirname "$0")/../.."

scripts="dev .ci/run $(find calibrate tests -name '*.sh' -print | sort)"
check=no
command -v shellcheck >/dev/null 2>&1 && check=yes
status=0
for script in $scripts; do
  case $(head -n 1 "$script") in
    *bash) shell="bash" ;;
    *) shell="sh" ;;
  esac
  "$shell" -n "$script" || status=1
  [ $check = no ] || shellcheck --external-sources --severity=warning --shell="$shell" "$script" || status=1
done
for script in dev .ci/run; do
  [ -x "$script" ] || { echo "$script is not executable"; status=1; }
done
exit $status
