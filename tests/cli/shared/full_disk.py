"""Each writer on a disk that is full after n bytes of a file, n from nothing to a byte too few.

The command ends with 7 and a sentence, its answer is printed all the same; under a final name there
is a whole file of this run or what was there before, of files that belong together all or none are
of this run; nothing half written stays.
    full_disk.py FOLDER_OF_PROGRAMS SOURCE_FOLDER
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

programs, source = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
PLAN = "--model llama2-7b --gpu h100 --nodes 1 --global-batch 8".split()
STUDY = str(source / "scenarios/context_lengths.toml")
GOAL = str(sorted((source / "scenarios/design").glob("*.toml"))[0])
CONFIG = str(source / "fuzz/corpus/model_config/mixtral.json")
TABLE = str(source / "calibrate/published/collectives.csv")
LOG = str(source / "tests/calibrate/fixtures/all_reduce_a100_8.log")

# What the command prints beside the files (""; nothing), and its words; OUT is the folder it may
# write into. Files that belong together are named with the option that writes them.
WRITERS = [
    ("step time", ["stepcast", "run", *PLAN, "--out", "OUT/run"]),
    ("step time", ["stepcast", "run", *PLAN, "--csv", "OUT/run.csv"]),
    ("step time", ["stepcast", "run", *PLAN, "--timeline", "OUT/step.json"]),
    ("step time", ["stepcast", "run", *PLAN, "--timeline", "OUT/step.json.gz"]),
    ("step time", ["stepcast", "run", *PLAN, "--memory-timeline", "OUT/memory.svg"]),
    ("step time", ["stepcast", "run", *PLAN, "--report", "OUT/step.html"]),
    ("step time", ["stepcast", "run", *PLAN, "--svg", "OUT/charts"]),
    ("step", ["stepcast", "sweep", STUDY, "--csv", "OUT/sweep.csv"]),
    ("", ["stepcast", "sweep", STUDY, "--out", "OUT/sweep"]),
    ("", ["stepcast", "collective", "all_reduce", "--gpu", "h100", "--nodes", "2",
          "--tune", "OUT/tuner.csv"]),
    ("plan", ["stepcast", "search", *PLAN, "--out", "OUT/search"]),
    ("plan", ["stepcast", "search", *PLAN, "--csv", "OUT/search.csv"]),
    ("cheapest", ["stepcast", "design", GOAL, "--out", "OUT/design"]),
    ("", ["stepcast", "compare", *PLAN[:2], *PLAN[4:], "--gpu", "a100,h100",
          "--svg", "OUT/way.svg"]),
    ("path", ["stepcast", "why", *PLAN, "--timeline", "OUT/why.json"]),
    ("path", ["stepcast", "why", *PLAN, "--csv", "OUT/why.csv"]),
    ("", ["stepcast", "export", *PLAN, "--chakra", "OUT/chakra"]),
    ("", ["stepcast", "report", *PLAN, "--out", "OUT/report.html"]),
    ("", ["stepcast", "launch", *PLAN, "--out", "OUT/launch"]),
    ("", ["stepcast", "import-model", CONFIG, "--out", "OUT/model.toml"]),
    ("", ["stepcast", "show", "cluster", "--gpu", "h100", "--nodes", "2",
          "--graphviz", "OUT/g.dot"]),
    ("", ["stepcast-calibrate", "import", LOG, "--out", "OUT/table.h5"]),
    ("median", ["stepcast-validate", "layers", "--csv", "OUT/layers.csv"]),
    ("median", ["stepcast-validate", "collectives", TABLE, "--csv", "OUT/c.csv"]),
    ("median", ["stepcast-validate", "published", "mlgv", "--quiet", "--out", "OUT/mlgv"]),
]

# Some write over nothing that is not their own.
REFUSALS = ("is there already", "is there and not empty", "would be overwritten")


def run(words, limit=None):
    prefix = [] if limit is None else ["prlimit", f"--fsize={limit}:{limit}"]
    return subprocess.run([*prefix, str(programs / words[0]), *words[1:]], capture_output=True,
                          text=True, errors="replace")


def files():
    return {str(p): p.read_bytes() for p in sorted(pathlib.Path("OUT").rglob("*")) if p.is_file()}


def is_note(name):
    """What a later run goes on from, a finished point a line: no answer stands in it."""
    return pathlib.Path(name).name in (".stepcast.lock", "sweep.json", "results.jsonl")


def faults(words, answer, whole, limit, old):
    """What is wrong after the command had `limit` bytes for a file, as sentences."""
    shutil.rmtree("OUT", ignore_errors=True)
    pathlib.Path("OUT").mkdir()
    if old:
        for name in whole:
            path = pathlib.Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"old\n")
    done = run(words, limit)
    left = {name: text for name, text in files().items() if not is_note(name)}
    if old and any(word in done.stderr for word in REFUSALS):
        if set(left.values()) != {b"old\n"}:
            yield "refuses to write over others' files, and has"
        return
    if done.returncode != 7:
        yield f"exit {done.returncode}"
    if "cannot be written" not in done.stderr:
        yield "no sentence: " + done.stderr[-200:]
    begins = limit > 1 or "--out" not in words  # what cannot even begin its folder computes nothing
    if begins and answer and answer not in done.stdout:
        yield "the answer is not printed"
    new = set()
    for name, text in left.items():
        if name not in whole:
            yield f"{name} stays"
        elif len(text) == len(whole[name]):
            new.add(name)
        elif not (old and text == b"old\n"):
            yield f"{name} has {len(text)} of {len(whole[name])} bytes"
    if new and len(left) != len(new):
        yield "beside new files stand old ones"


def main():
    failures = tried = 0
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        for answer, words in WRITERS:
            shutil.rmtree("OUT", ignore_errors=True)
            pathlib.Path("OUT").mkdir()
            done = run(words)
            whole = {name: text for name, text in files().items() if not is_note(name)}
            if done.returncode != 0 or not whole:
                print(" ".join(words), f": exit {done.returncode}, {len(whole)} files")
                print(done.stderr[-300:])
                failures += 1
                continue
            sizes = sorted({len(text) for text in whole.values()})
            most = sizes[-1]
            # A byte too few for the smallest, the middle and the largest file, and early ends.
            short = {size - 1 for size in (sizes[0], sizes[len(sizes) // 2], most)}
            for limit in sorted({0, 1, most // 2} | short):
                for old in (False, True):
                    tried += 1
                    for fault in faults(words, answer, whole, limit, old):
                        print(" ".join(words), f"with {limit} of {most} bytes",
                              "over old files:" if old else ":", fault)
                        failures += 1
    print(f"{tried} full disks, {failures} faults")
    return failures > 0


sys.exit(main())
