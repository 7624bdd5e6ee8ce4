#!/bin/sh
# Fails when a file names a place that exists on one machine only: a home, a scratch folder, a
# mount. What the tree needs lies in the tree or is found by CMake.
set -eu
cd "$(dirname "$0")/../.."

# A slash after a letter, digit, dot or brace continues a relative path or an address.
pattern='(^|[^][A-Za-z0-9_.}*~/-])/(home|root|tmp|work|mnt|media|scratch|workspace|Users)/'
list() {
  if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files -z --cached --others --exclude-standard
  else
    find . \( -name build -o -name out -o -name .git \) -prune -o -type f -print0
  fi
}
[ "$(list | tr -cd '\0' | wc -c)" -gt 0 ] || { echo "machine_paths: found no files"; exit 1; }
# This file holds the names that it looks for.
found=$(list | xargs -0 grep -nIE "$pattern" 2>/dev/null | grep -v '^\(\./\)\?tests/house/machine_paths.sh:' || true)
if [ -n "$found" ]; then
  echo "paths of one machine:"
  echo "$found"
  exit 1
fi
