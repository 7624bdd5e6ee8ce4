#!/bin/sh
# The version stands once in each place that names it, and each release of CHANGES.md is a page.
set -eu
cd "$(dirname "$0")/../.."
status=0
fail() {
  echo "release: $1"
  status=1
}

version=$(sed -n 's/^project(stepcast VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
cited=$(sed -n 's/^version: //p' CITATION.cff)
date=$(sed -n 's/^date-released: //p' CITATION.cff)
newest=$(sed -n 's/^## //p' CHANGES.md | head -n 1)
[ -n "$version" ] || fail "CMakeLists.txt names no version"
[ "$cited" = "$version" ] || fail "CITATION.cff says $cited, CMakeLists.txt $version"
[ "$newest" = "$version, $date" ] ||
  fail "CHANGES.md begins with \"$newest\", not with \"$version, $date\""

awk '/^## / { release = $2 } release { lines[release]++ }
  END { for (r in lines) if (lines[r] > 100) { print "release: CHANGES.md has " lines[r] \
    " lines about " r ", a page has 100"; bad = 1 } exit bad }' CHANGES.md || status=1
exit $status
