#!/bin/sh
# Every script of the tree parses, and shellcheck, where it is installed, has nothing to say.
set -eu
cd "$(dirname "$0")/../.."

scripts="dev .ci/run $(find tests -name '*.sh' -print | sort)"
status=0
for script in $scripts; do
  case $(head -n 1 "$script") in
    *bash) shell=bash ;;
    *) shell="sh" ;;
  esac
  "$shell" -n "$script" || status=1
done
for script in dev .ci/run; do
  [ -x "$script" ] || { echo "$script is not executable"; status=1; }
done
if command -v shellcheck >/dev/null 2>&1; then
  # shellcheck disable=SC2086  # the list is split into names on purpose
  shellcheck $scripts || status=1
fi
exit $status
