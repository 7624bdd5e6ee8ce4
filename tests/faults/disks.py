"""Each writer on disks that fail: full after n bytes of a file (a limit of the kernel's) or of all
files, an error of the n-th byte, short writes, and failures of the n-th open, mkdir, sync, close,
rename and truncate, which failing_files.cpp puts between program and kernel.

The command ends with 7 and a sentence, its answer is printed all the same; under a final name there
is a whole file of this run or what was there before, of files that belong together all or none are
of this run; nothing half written stays. Writes that are merely short change nothing.
    disks.py FOLDER_OF_PROGRAMS SOURCE_FOLDER [--calls N | --draw N [--seed S]] [--writer WORDS]
"""
import argparse
import errno
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

from scenarios import few_machines, few_plans, nodes, tiny

# Some write over nothing that is not their own.
REFUSALS = ("is there already", "is there and not empty", "would be overwritten",
            "is not an HDF5 file")


class Writer:
    """A command that writes into OUT, and what it prints beside the files ("": nothing to judge
    by). `varies`: its files tell times, so that each run's are others; `keeps`: files that a later
    run goes on from, of which each stands for itself; `again`: what it could not write it writes
    once more; `before`: a folder that OUT is a copy of; `elsewhere`: it needs other files as well,
    so that no limit on all files is for it; `slow`: it takes seconds."""

    def __init__(self, answer, *words, varies=False, keeps=False, again=False, before=None,
                 needs=None, elsewhere=False, slow=False):
        self.answer, self.words, self.needs = answer, words, needs
        self.varies, self.keeps, self.again = varies, keeps, again
        self.before, self.elsewhere, self.slow = before, elsewhere, slow
        self.name = " ".join(w for w in words if "/" not in w or w.startswith("OUT"))


def writers(source):
    """With OUT for the folder it may write into. Those with `needs` find it in what fixtures()
    made."""
    plan = "--model llama2-7b --gpu h100 --nodes 1 --global-batch 8".split()
    study = str(source / "scenarios/context_lengths.toml")
    config = str(source / "fuzz/corpus/model_config/mixtral.json")
    table = str(source / "calibrate/published/collectives.csv")
    log = str(source / "tests/calibrate/fixtures/all_reduce_a100_8.log")
    trainer = "stepcast-trainer tiny.toml --steps 3 --warm-up 1 --quiet --ranks threads".split()
    run = ("stepcast-validate run tiny.toml --as-calibrated --table host.h5 --steps 3 --warm-up 1"
           " --ranks threads").split()
    box = ("stepcast-validate cluster nodes.toml --as-calibrated --table host.h5 --steps 3"
           " --warm-up 1 --compute waits").split()
    return [
        Writer("step time", "stepcast", "run", *plan, "--out", "OUT/run"),
        Writer("step time", "stepcast", "run", *plan, "--csv", "OUT/run.csv"),
        Writer("step time", "stepcast", "run", *plan, "--timeline", "OUT/step.json"),
        Writer("step time", "stepcast", "run", *plan, "--timeline", "OUT/step.json.gz"),
        Writer("step time", "stepcast", "run", *plan, "--timeline", "OUT/step.pftrace"),
        Writer("step time", "stepcast", "run", *plan, "--memory-timeline", "OUT/memory.svg"),
        Writer("step time", "stepcast", "run", *plan, "--no-alternatives", "--report",
               "OUT/step.html"),
        Writer("step time", "stepcast", "run", *plan, "--no-alternatives", "--svg", "OUT/charts"),
        Writer("step", "stepcast", "sweep", study, "--csv", "OUT/sweep.csv"),
        Writer("", "stepcast", "sweep", study, "--out", "OUT/sweep"),
        Writer("", "stepcast", "sweep", "merge", "OUT/shards", before="shards", needs="shards"),
        Writer("", "stepcast", "collective", "all_reduce", "--gpu", "h100", "--nodes", "2",
               "--tune", "OUT/tuner.csv"),
        Writer("plan", "stepcast", "search", *plan, *few_plans, "--out", "OUT/search"),
        Writer("plan", "stepcast", "search", *plan, *few_plans, "--csv", "OUT/search.csv"),
        Writer("cheapest", "stepcast", "design", "goal.toml", "--out", "OUT/design"),
        Writer("cheapest", "stepcast", "design", "goal.toml", "--report", "OUT/design.html",
               slow=True),
        Writer("", "stepcast", "compare", *plan[:2], *plan[4:], "--gpu", "a100,h100",
               "--svg", "OUT/way.svg"),
        Writer("path", "stepcast", "why", *plan, "--timeline", "OUT/why.json"),
        Writer("path", "stepcast", "why", *plan, "--csv", "OUT/why.csv"),
        Writer("", "stepcast", "export", *plan, "--chakra", "OUT/chakra"),
        Writer("", "stepcast", "report", *plan, "--no-alternatives", "--out", "OUT/report.html"),
        Writer("", "stepcast", "launch", *plan, "--out", "OUT/launch"),
        Writer("", "stepcast", "import-model", config, "--out", "OUT/model.toml"),
        Writer("", "stepcast", "show", "cluster", "--gpu", "h100", "--nodes", "2",
               "--graphviz", "OUT/g.dot"),
        Writer("", "stepcast-calibrate", "import", log, "--out", "OUT/table.h5"),
        Writer("measured", "stepcast-calibrate", "run", "--device", "host", "--quick", "--resume",
               "--for", "tiny.toml", "--out", "OUT/host.h5", varies=True, again=True,
               before="tables", needs="host.h5"),
        Writer("median", "stepcast-validate", "layers", "--csv", "OUT/layers.csv"),
        Writer("", "stepcast-validate", "goodput", "--csv", "OUT/goodput.csv"),
        Writer("median", "stepcast-validate", "goodput", "--report", "OUT/goodput.html"),
        Writer("median", "stepcast-validate", "collectives", table, "--csv", "OUT/c.csv"),
        Writer("median", "stepcast-validate", "published", "mlgv", "--quiet", "--out",
               "OUT/mlgv", slow=True),
        Writer("step time", *trainer, "--out", "OUT/trained.json", varies=True, needs="host.h5"),
        Writer("step time", *trainer, "--timeline", "OUT/trained.json", varies=True,
               needs="host.h5"),
        Writer("", *trainer, "--checkpoint", "OUT/kept", keeps=True, needs="host.h5"),
        Writer("", *trainer[:-1], "processes", "--checkpoint", "OUT/kept", "--save-every", "2",
               keeps=True, needs="host.h5"),
        Writer("step time", *run, "--csv", "OUT/run.csv", varies=True, needs="host.h5",
               elsewhere=True),
        Writer("step time", *run, "--report", "OUT/reports", varies=True, needs="host.h5",
               elsewhere=True),
        Writer("", *run, "--out", "OUT/run", varies=True, keeps=True, needs="host.h5"),
        Writer("median", *box, "--csv", "OUT/box.csv", varies=True, needs="box", elsewhere=True,
               slow=True),
        Writer("median", *box, "--report", "OUT/reports", varies=True, needs="box", elsewhere=True,
               slow=True),
    ]


def fixtures(programs, source):
    """What writers start from, into this folder; what cannot be made here, with the reason."""
    missing = {}
    pathlib.Path("tiny.toml").write_text(tiny, encoding="utf-8")
    shipped = (source / "scenarios/design/llama3-70b-2t.toml").read_text(encoding="utf-8")
    pathlib.Path("goal.toml").write_text(few_machines(shipped), encoding="utf-8")
    pathlib.Path("nodes.toml").write_text(nodes, encoding="utf-8")

    def made(name, *words):
        done = subprocess.run([str(programs / words[0]), *words[1:]], capture_output=True,
                              text=True, errors="replace", check=False)
        if done.returncode != 0:
            missing[name] = done.stderr.strip()[-200:]

    made("host.h5", "stepcast-calibrate", "run", "--device", "host", "--quick", "--resume", "--for",
         "tiny.toml", "--out", "host.h5")
    if "host.h5" not in missing:  # a table that lacks two kernels, and no collective (MPI is slow)
        rows = subprocess.run([str(programs / "stepcast-calibrate"), "export", "--csv", "host.h5"],
                              capture_output=True, text=True, check=True).stdout.splitlines()
        pathlib.Path("rows.csv").write_text(
            "\n".join(row for row in rows if "rmsnorm" not in row) + "\n", encoding="utf-8")
        os.mkdir("tables")
        made("host.h5", "stepcast-calibrate", "import", "rows.csv", "--out", "tables/host.h5")
    study = str(source / "scenarios/context_lengths.toml")
    for shard in ("1/2", "2/2"):
        made("shards", "stepcast", "sweep", study, "--out", "shards/shards", "--shard", shard,
             "--quiet")
    if "host.h5" in missing:
        missing["box"] = missing["host.h5"]
    else:
        made("box", "stepcast-validate", "cluster", "nodes.toml", "--as-calibrated", "--table",
             "host.h5", "--steps", "3", "--warm-up", "1", "--compute", "waits")
    return missing


def failing_files(programs):
    """A script may have built it itself."""
    return pathlib.Path(os.environ.get("STEPCAST_FAILING_FILES", programs / "failing_files.so"))


class Disk:
    """How it fails, and the words and the environment that make a program see it."""

    def __init__(self, text, prefix=(), plan=""):
        self.text, self.prefix, self.plan = text, list(prefix), plan
        self.is_short = plan.startswith("short")

    @staticmethod
    def full_file(size):
        return Disk(f"{size} bytes for a file", ["prlimit", f"--fsize={size}:{size}"])

    @staticmethod
    def failing(library, call, error, at):
        disk = Disk(f"{call} {at} fails with {os.strerror(error)}" if error else "short writes",
                    plan=f"{call} {error} {at}")
        disk.library = library
        return disk

    def environment(self):
        if not self.plan:
            return None
        here = os.path.realpath(".")
        return {**os.environ, "LD_PRELOAD": str(self.library), "STEPCAST_FAIL": self.plan,
                "STEPCAST_FAIL_UNDER": here + "/OUT", "STEPCAST_FAIL_SAID": here + "/said"}

    def befell(self):
        return not self.plan or os.path.exists("said")


# Of each a number of them fails, with what a disk, a quota or a mount answers.
CALLS = (("open", errno.ENOSPC), ("mkdir", errno.ENOSPC), ("sync", errno.EIO),
         ("close", errno.EDQUOT), ("rename", errno.EIO), ("truncate", errno.EIO))


def files():
    return {str(p): p.read_bytes() for p in sorted(pathlib.Path("OUT").rglob("*")) if p.is_file()}


def is_note(name):
    """What a later run goes on from, a finished point a line: no answer stands in it."""
    name = pathlib.Path(name).name
    return name in (".stepcast.lock", "sweep.json") or name.endswith(".jsonl")


def answers():
    return {name: text for name, text in files().items() if not is_note(name)}


def looks_whole(name, text, whole):
    """Of a file that is another each time."""
    if name.endswith(".json"):
        try:
            json.loads(text)
            return True
        except ValueError:
            return False
    if name.endswith(".h5"):  # it begins with where it ends
        return len(text) > 36 and int.from_bytes(text[28:36], "little") == len(text)
    return text.endswith(b"\n") and text.count(b"\n") == whole.count(b"\n")


class Tried:
    """One writer, and what its files are where nothing fails."""

    def __init__(self, programs, writer):
        self.programs, self.writer = programs, writer
        self.prepare()
        self.done = self.run()
        self.whole = answers()
        self.bytes = sum(len(text) for text in files().values())

    def prepare(self):
        shutil.rmtree("OUT", ignore_errors=True)
        for path in ("said", "elsewhere"):
            shutil.rmtree(path, ignore_errors=True)
        if os.path.exists("said"):
            os.remove("said")
        if self.writer.before:
            shutil.copytree(self.writer.before, "OUT")
        pathlib.Path("OUT").mkdir(exist_ok=True)
        pathlib.Path("elsewhere").mkdir()

    def run(self, disk=None):
        words = self.writer.words
        environment = (disk.environment() if disk else None) or dict(os.environ)
        environment["TMPDIR"] = os.path.realpath("elsewhere")
        return subprocess.run(
            [*(disk.prefix if disk else []), str(self.programs / words[0]), *words[1:]],
            capture_output=True, text=True, errors="replace", env=environment, check=False,
            stdin=subprocess.DEVNULL, timeout=1800)

    def is_whole(self, name, text):
        if self.writer.varies and name in self.whole:
            return looks_whole(name, text, self.whole[name])
        return len(text) == len(self.whole[name])

    def faults(self, disk, old):
        """None where the disk did not fail; else what is wrong, as sentences."""
        self.prepare()
        if old:
            for name in self.whole:
                path = pathlib.Path(name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(b"old\n")
        done = self.run(disk)
        if not disk.befell():
            return None
        return list(self.wrong(disk, old, done))

    def wrong(self, disk, old, done):
        left = answers()
        if old and any(word in done.stderr for word in REFUSALS):
            if set(left.values()) != {b"old\n"}:
                yield "refuses to write over others' files, and has"
            return
        if disk.is_short:
            if done.returncode != 0:
                yield f"exit {done.returncode} where writes are short: {done.stderr[-200:]}"
            if set(left) != set(self.whole):
                yield f"has written {sorted(left)}"
        elif not self.written_again(disk, done, left):
            if done.returncode != 7:
                yield f"exit {done.returncode}"
            if "cannot be written" not in done.stderr + done.stdout:
                yield "no sentence: " + done.stderr[-200:]
        if self.began() and self.writer.answer and self.writer.answer not in done.stdout:
            yield "the answer is not printed"
        new = set()
        for name, text in left.items():
            if name not in self.whole:  # of an earlier step, perhaps
                if not (self.writer.keeps and looks_whole(name, text, b"")):
                    yield f"{name} stays"
            elif old and text == b"old\n":
                continue
            elif self.is_whole(name, text):
                new.add(name)
            else:
                yield f"{name} has {len(text)} of {len(self.whole[name])} bytes"
        if new and len(left) != len(new) and not self.writer.keeps:
            yield "beside new files stand old ones"

    def written_again(self, disk, done, left):
        """All is there. HDF5 opens twice what it is to make: the first time may fail."""
        opened = disk.plan.startswith("open") and any(name.endswith(".h5") for name in left)
        return ((opened or self.writer.again) and done.returncode == 0
                and set(left) == set(self.whole)
                and all(self.is_whole(name, text) for name, text in left.items()))

    def began(self):
        """What cannot even begin its folder of results computes nothing."""
        words = self.writer.words
        if words[1] not in ("run", "sweep") or "--out" not in words:
            return True
        folder = words[words.index("--out") + 1]
        return os.path.exists(f"{folder}/sweep.json") or os.path.exists(f"{folder}/points")

    def disks(self, library):
        """The sizes that matter of each kind, and short writes."""
        sizes = sorted({len(text) for text in self.whole.values()})
        most = sizes[-1]
        # A byte too few for the smallest, the middle and the largest file, and early ends.
        short = {size - 1 for size in (sizes[0], sizes[len(sizes) // 2], most)}
        if self.writer.varies:
            short = set()  # another run may need less
        if self.limits_files():
            for limit in sorted({0, 1, most // 2} | short):
                yield Disk.full_file(limit)
        for error in (errno.ENOSPC, errno.EIO):
            for at in sorted({1, 2, max(1, self.bytes // 2), max(1, self.bytes * 3 // 4)}):
                yield Disk.failing(library, "bytes", error, at)
        yield Disk.failing(library, "short", 0, 1)

    def limits_files(self):
        return shutil.which("prlimit") and not self.writer.elsewhere

    def some_disk(self, library, dice):
        """One that is as likely to fail in the middle as at an end."""
        kind = dice.choice(("file", "bytes", "bytes", "short", *CALLS))
        most = max(len(text) for text in self.whole.values())
        if kind == "file" and self.limits_files():
            return Disk.full_file(dice.randrange(most // 2 if self.writer.varies else most))
        if kind == "short":
            return Disk.failing(library, "short", 0, 1)
        if kind in ("file", "bytes"):
            share = 0.75 if self.writer.varies else 1.0
            return Disk.failing(library, "bytes", dice.choice((errno.ENOSPC, errno.EIO)),
                                dice.randint(1, max(1, int(share * self.bytes))))
        return Disk.failing(library, *kind, dice.randint(1, 6))

    def drawn_faults(self, library, dice, number):
        """The same of so many drawn ones, half of them over old files."""
        first = dice.randrange(2)
        for i in range(first, first + number):
            old, wrong = i % 2 == 1, None
            while wrong is None:
                disk = self.some_disk(library, dice)
                wrong = self.faults(disk, old)
            yield disk, old, wrong

    def all_faults(self, library, most_calls):
        """Each disk that failed, with what is wrong after it."""
        for disk in self.disks(library):
            for old in (False, True):
                if (wrong := self.faults(disk, old)) is not None:
                    yield disk, old, wrong
        for call, error in CALLS:
            for at in range(1, most_calls + 1):
                for old in (False, True):
                    disk = Disk.failing(library, call, error, at)
                    if (wrong := self.faults(disk, old)) is not None:
                        yield disk, old, wrong
                if wrong is None:  # there are no more such calls
                    break


def main():
    parser = argparse.ArgumentParser(prog="disks")
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--calls", type=int, default=2,
                        help="so many of each kind of call fail, one a run (2)")
    parser.add_argument("--draw", type=int, default=0,
                        help="instead of all so many of each writer, drawn by a seed")
    parser.add_argument("--quick", action="store_true", help="without the slow writers")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--writer", default="", help="words of its command")
    arguments = parser.parse_args()
    programs, source = arguments.programs.resolve(), arguments.source.resolve()
    library = failing_files(programs)
    failures = tried = 0
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        missing = fixtures(programs, source)
        for writer in writers(source):
            if arguments.writer not in writer.name or (arguments.quick and writer.slow):
                continue
            if writer.needs in missing:
                print(f"skipped: {writer.name}: {missing[writer.needs]}")
                continue
            begin = time.monotonic()
            one = Tried(programs, writer)
            if one.done.returncode != 0 or not one.whole:
                print(f"{writer.name}: exit {one.done.returncode}, {len(one.whole)} files")
                print(one.done.stderr[-300:])
                failures += 1
                continue
            disks = found = 0
            dice = random.Random(f"{arguments.seed}/{writer.name}")
            tries = (one.drawn_faults(library, dice, arguments.draw) if arguments.draw
                     else one.all_faults(library, arguments.calls))
            for disk, old, wrong in tries:
                disks += 1
                found += bool(wrong)
                for fault in wrong if found <= 5 else ():
                    print(f"{writer.name}, {disk.text}{', over old files' if old else ''}: {fault}")
            print(f"{disks:>5}{found:>5}{time.monotonic() - begin:>7.1f} s  {writer.name}",
                  flush=True)
            failures += found
            tried += disks
    print(f"{tried} disks that failed, {failures} faults")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
