#!/bin/sh
# Fails when a table gives as its source what only a search index knows: a reader must be able to
# find it.
set -eu
cd "$(dirname "$0")/../.."

pattern='read_file|find_string|find_files|\bid [0-9]{9,}'
list() {
  if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files -z --cached --others --exclude-standard -- '*.csv' '*.toml' '*.md'
  else
    find . \( -name build -o -name out -o -name .git \) -prune -o \
      \( -name '*.csv' -o -name '*.toml' -o -name '*.md' \) -type f -print0
  fi
}
[ "$(list | tr -cd '\0' | wc -c)" -gt 0 ] || { echo "sources: found no files"; exit 1; }
found=$(list | xargs -0 grep -nIoE ".{0,60}($pattern).{0,20}" 2>/dev/null || true)
if [ -n "$found" ]; then
  echo "sources that nobody else can find:"
  echo "$found"
  exit 1
fi
