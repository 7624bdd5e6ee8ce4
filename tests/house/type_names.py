"""Fails when two files of one folder give a type the same name in the same namespace: the linker
keeps one of them for both, and nothing but a sanitizer notices.

    type_names.py [SOURCE_FOLDER]
"""

import collections
import pathlib
import re
import sys

FOLDERS = ("engine", "topology", "workloads", "sim", "calibrate", "validate")
OPENS = re.compile(r"(?:inline )?namespace ?([\w:]*) ?\{")
CLOSES = "}  // namespace"
TYPE = re.compile(r"(?:struct|class|enum class) (\w+)(?: final)?(?: : .*)? \{")


def places_of_types(root):
    """{"stepcast::sim::Way": {files}}, without what anonymous namespaces keep to themselves."""
    places = collections.defaultdict(set)
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".hpp", ".cpp", ".cu", ".cuh"):
                continue
            spaces = []
            for line in path.read_text(encoding="utf-8").splitlines():
                if opened := OPENS.match(line):
                    spaces.append(opened[1] or "its own")
                elif line.startswith(CLOSES) and spaces:
                    spaces.pop()
                elif (named := TYPE.match(line)) and "its own" not in spaces:
                    places["::".join(spaces) + "::" + named[1]].add(str(path.relative_to(root)))
    return places


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    places = places_of_types(root)
    if not places:
        sys.exit("type_names: found no types")
    twice = {name: files for name, files in places.items() if len(files) > 1}
    for name, files in sorted(twice.items()):
        print(name + ": " + ", ".join(sorted(files)))
    sys.exit(1 if twice else 0)


main()
