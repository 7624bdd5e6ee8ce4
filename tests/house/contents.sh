#!/bin/sh
# The contents at the top of DESIGN.md name every paragraph of it, part by part.
set -eu
cd "$(dirname "$0")/../.."
awk '
  /^## / { part = substr($0, 4); begun = 1; next }
  begun && /^### / { titles[part] = titles[part] (titles[part] == "" ? "" : "; ") substr($0, 5) }
  !begun && /^- \[/ { name = $0; sub(/^- \[/, "", name); sub(/\].*/, "", name) }
  !begun && name != "" && !/^$/ { said[name] = said[name] " " $0 }
  END {
    for (part in titles) {
      num++
      text = said[part]
      sub(/^ - \[[^]]*\]\([^)]*\): /, "", text)
      gsub(/ +/, " ", text)
      if (tolower(text) != tolower(titles[part])) {
        print "DESIGN.md, contents of " part ":\n  " text "\nthe part has\n  " titles[part]
        bad = 1
      }
    }
    for (name in said) if (!(name in titles)) { print "DESIGN.md has no part " name; bad = 1 }
    if (!num) { print "DESIGN.md has no parts"; bad = 1 }
    exit bad
  }' DESIGN.md
