#!/bin/sh
# The list of dependencies that the build writes (SPDX) parses, and names every shared object that a
# program of it is linked with, and nothing twice.
#   dependencies.sh FOLDER_OF_PROGRAMS [LIST]
set -eu
command -v readelf >/dev/null 2>&1 || { echo "no readelf"; exit 77; }
needed=$(for program in "$1"/stepcast "$1"/stepcast-* "$1"/*stepcast*.so "$1"/python/stepcast/*.so; do
  [ ! -f "$program" ] || readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
done | sort -u)
[ -n "$needed" ] || { echo "no program in $1"; exit 77; }
NEEDED=$needed python3 - "${2:-$1/stepcast.spdx.json}" <<'END'
import json, os, re, sys
document = json.load(open(sys.argv[1]))
assert document["spdxVersion"] == "SPDX-2.3"
packages = document["packages"]
ids = [p["SPDXID"] for p in packages]
assert len(ids) == len(set(ids)) > 5, ids
for p in packages:
    for key in ("name", "versionInfo", "downloadLocation", "licenseDeclared", "copyrightText"):
        assert p.get(key), (p["name"], key)
    assert re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", p["SPDXID"]), p["SPDXID"]
for r in document["relationships"]:
    assert r["relatedSpdxElement"] in ids, r
listed = {w.rstrip(",;") for p in packages for w in p.get("comment", "").split() if w.startswith("lib")}
# Ours, and the compiler's and libc's own, which are the system's and not ours to choose.
system = re.compile(r"(libstepcast|libstdc\+\+|libm|libgcc_s|libc|libpthread|libdl|librt|ld-linux.*|lib[atu]bsan|lib[atul]+san)$")
missing = set()
for name in os.environ["NEEDED"].split():
    library = re.sub(r"\.so.*|_serial(?=\.so)", "", name).removesuffix("_serial")
    if library not in listed and not system.match(library):
        missing.add(name)
assert not missing, f"linked, but not in the list: {sorted(missing)}"
END
