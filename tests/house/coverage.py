"""Lines and branches that ran, by room, from llvm-cov's summary; readers that nobody called.
   coverage.py coverage.json functions.txt"""

import json
import os
import re
import sys
from collections import defaultdict

FOLDERS = ("engine", "topology", "workloads", "sim", "calibrate", "validate")
READER = re.compile(r"\b((?:read|parse|import)_\w+)\(")


def rooms_of(summary, top):
    """Covered and counted lines, and branches, by room and by folder."""
    sums = defaultdict(lambda: [0, 0, 0, 0])
    for file in summary["data"][0]["files"]:
        room = os.path.dirname(os.path.relpath(file["filename"], top))
        lines, branches = file["summary"]["lines"], file["summary"]["branches"]
        for name in {room, room.split("/")[0], "all"}:
            for i, part in enumerate((lines["covered"], lines["count"],
                                      branches["covered"], branches["count"])):
                sums[name][i] += part
    return sums


def per_cent(part, whole):
    return f"{100 * part / whole:.1f}" if whole else "-"


def uncalled_readers(report):
    """Of llvm-cov's functions those without a line that ran: (file, name)."""
    file, called, found = "", set(), set()
    for line in report:
        if match := re.match(r"File '(.*)':", line):
            file = os.path.relpath(match[1])
        elif match := READER.search(line):
            # NAME  regions missed %  lines missed %: a function in several programs comes once each
            lines, missed = line.split()[-3:-1]
            (found if lines == missed else called).add((file, match[1]))
    return sorted(found - called)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        sums = rooms_of(json.load(file), os.getcwd())
    print(f"{'room':<34}{'lines':>8}{'run %':>8}{'branches':>10}{'run %':>8}")
    names = sorted(sums, key=lambda n: (n != "all", FOLDERS.index(n.split("/")[0])
                                        if n != "all" else 0, n))
    for name in names:
        lines_run, lines, branches_run, branches = sums[name]
        shown = "  " * min(1, name.count("/")) + name
        print(f"{shown:<34}{lines:>8,}{per_cent(lines_run, lines):>8}"
              f"{branches:>10,}{per_cent(branches_run, branches):>8}")
    with open(sys.argv[2], encoding="utf-8") as file:
        uncalled = uncalled_readers(file)
    print(f"\nreaders that no test has called: {len(uncalled)}")
    for place, name in uncalled:
        print(f"  {name} ({place})")


if __name__ == "__main__":
    main()
