"""The writers: what each runs, what may befall it, and what must be there afterwards."""

import csv
import json
import os
import pathlib
import re
import shutil
import tempfile
import time
import uuid

import disks
from harness import (Folder, Lost, Proxy, Run, Skipped, ask_to_end, befall, bytes_of, done,
                     free_port, hang, kill, kill_child, partial_files, patience, pause)
from scenarios import few_machines, few_plans, nodes, points, tiny, two_plans

source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

def no_partial(folder):
    if left := partial_files(folder):
        raise Lost(f"left behind: {left}")


class Trainer:
    """Two ranks that save every few steps: whatever befalls them, going on from what was saved
    gives the losses of one whole run, bit by bit."""

    name = "trainer, checkpoints"
    steps, every = 24, 3
    faults = (kill, ask_to_end, kill_child, kill_child, pause, pause)
    ranks = "processes"

    def __init__(self, programs, work):
        self.program = f"{programs}/stepcast-trainer"
        self.scenario = f"{work}/tiny.toml"
        with open(self.scenario, "w", encoding="utf-8") as file:
            file.write(tiny)
        begin = time.monotonic()
        done(self.command(self.steps, out="whole.json") + ["--checkpoint", "whole"], work)
        self.span_s = time.monotonic() - begin
        self.losses = self.losses_in(f"{work}/whole.json")

    def command(self, steps, out="r.json", seconds=8.0, ranks=None):
        return [self.program, self.scenario, "--ranks", ranks or self.ranks, "--steps", str(steps),
                "--warm-up", "0", "--patience", f"{patience(seconds):.1f} s", "--out", out,
                "--quiet"]

    def saving(self, *more, **how):
        return self.command(*more, **how) + ["--checkpoint", "kept", "--save-every",
                                             str(self.every)]

    @staticmethod
    def losses_in(path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)["losses"]

    @staticmethod
    def saved(folder):
        try:
            with open(f"{folder}/kept/latest", encoding="utf-8") as file:
                return int(file.read())
        except OSError:
            return 0

    def tried(self, folder, dice):
        fault = hang if dice.random() < 0.02 else dice.choice(self.faults)
        seconds = 1.0 if fault is hang else 8.0
        run = Run(self.saving(self.steps, seconds=seconds), folder)
        code, _ = befall(run, fault, dice, self.span_s)
        self.check(folder, code)

    def check(self, folder, code):
        first = self.saved(folder)
        if first % self.every != 0 or (code == 0 and first != self.steps):
            raise Lost(f"exit {code}, saved is step {first}")
        if os.path.exists(f"{folder}/r.json"):
            if self.losses_in(f"{folder}/r.json") != self.losses:
                raise Lost("other losses where nothing was lost")
        elif code == 0:
            raise Lost("exit 0 without results")
        if first == self.steps:
            self.check_files(folder)
            return
        go_on = self.command(self.steps - first, ranks="threads") + ["--checkpoint", "kept"]
        done(go_on + (["--resume"] if first else []), folder)
        if self.losses_in(f"{folder}/r.json") != self.losses[first:]:
            raise Lost(f"other losses after going on from step {first}")
        self.check_files(folder)
        no_partial(folder)

    def check_files(self, folder):
        steps = sorted(name for name in os.listdir(f"{folder}/kept") if name.startswith("step-"))
        if steps[-1:] != [f"step-{self.steps:08}"]:
            raise Lost(f"saved are {steps}")


class Nodes(Trainer):
    """The same on two nodes, between which connections are reset or fall silent."""

    name = "trainer, two nodes"

    def tried(self, folder, dice):
        silent = dice.random() < 0.05
        most = int(10 ** dice.uniform(0.0, 6.0))
        for _ in range(10):
            ends = self.pair(folder, silent, most)
            if "in use" not in ends[0][1]:
                break
        for code, said in ends:
            if code not in (0, 6):
                raise Lost(f"exit {code} after a reset: {said[-300:]}")
        if os.path.exists(f"{folder}/r0.json"):
            os.rename(f"{folder}/r0.json", f"{folder}/r.json")
        self.check(folder, ends[0][0])

    def pair(self, folder, silent, most):
        """How the two nodes end, on a port that was free a moment ago."""
        port, token = free_port(), uuid.uuid4().hex
        proxy = Proxy(port, most, resets=not silent)
        runs = []
        for node, at in ((0, port), (1, proxy.port)):
            command = self.saving(self.steps, out=f"r{node}.json",
                                  seconds=1.5 if silent else 8.0)
            command += ["--nodes", "2", "--node", str(node), "--rendezvous", f"127.0.0.1:{at}"]
            runs.append(Run(command, folder, {"STEPCAST_TRAINER_TOKEN": token}))
        ends = [run.end() for run in runs]
        proxy.close()
        return ends


class TwoTrainers(Trainer):
    """Two runs into one --checkpoint: one is refused, or comes after the other."""

    name = "trainer, two writers"

    def tried(self, folder, dice):
        runs = [Run(self.saving(self.steps, out="r0.json"), folder)]
        time.sleep(dice.uniform(0.0, 1.2 * self.span_s))
        runs.append(Run(self.saving(self.steps, out="r1.json"), folder))
        ends = [run.end() for run in runs]
        for code, said in ends:
            if code != 0 and (code != 3 or "being written by another run" not in said):
                raise Lost(f"exit {code} beside another: {said[-300:]}")
        finished = [i for i, (code, _) in enumerate(ends) if code == 0]
        if not finished:
            raise Lost("both were refused")
        for i in finished:
            if self.losses_in(f"{folder}/r{i}.json") != self.losses:
                raise Lost("other losses beside another run")
        self.check_files(folder)
        no_partial(folder)


class Sweep:
    """Every point that was kept before stays, and going on gives the files of one whole sweep."""

    name = "stepcast sweep"
    faults = (kill, ask_to_end, pause)

    def __init__(self, programs, work):
        self.program = f"{programs}/stepcast"
        self.scenario = f"{work}/points.toml"
        with open(self.scenario, "w", encoding="utf-8") as file:
            file.write(points)
        begin = time.monotonic()
        done(self.command() + ["--out", "whole-sweep"], work)
        self.span_s = time.monotonic() - begin
        self.whole = f"{work}/whole-sweep"

    def command(self):
        return [self.program, "sweep", self.scenario, "--threads", "2", "--quiet"]

    @staticmethod
    def rows(folder):
        try:
            return bytes_of(f"{folder}/out/results.jsonl").split(b"\n")[:-1]
        except OSError:
            return []

    def check(self, folder):
        for name in ("results.json", "results.h5", "scenario.toml"):
            if bytes_of(f"{folder}/out/{name}") != bytes_of(f"{self.whole}/{name}"):
                raise Lost(f"{name} is another than that of a whole sweep")
        no_partial(folder)

    def tried(self, folder, dice):
        run = Run(self.command() + ["--out", "out"], folder)
        befall(run, dice.choice(self.faults), dice, self.span_s)
        kept = self.rows(folder)
        done(self.command() + ["--out", "out", "--resume"], folder)
        if self.rows(folder)[:len(kept)] != kept:
            raise Lost("points that were kept are gone")
        self.check(folder)


class TwoSweeps(Sweep):
    """Two sweeps into one --out: one is refused, or comes after the other."""

    name = "sweep, two writers"

    def tried(self, folder, dice):
        runs = [Run(self.command() + ["--out", "out"], folder)]
        time.sleep(dice.uniform(0.0, 1.2 * self.span_s))
        runs.append(Run(self.command() + ["--out", "out"], folder))
        codes = []
        for run in runs:
            code, said = run.end()
            if code != 0 and (code != 3 or "being written by another" not in said):
                raise Lost(f"exit {code} beside another: {said[-300:]}")
            codes.append(code)
        if 0 not in codes:
            raise Lost("both were refused")
        self.check(folder)


class Files:
    """A command whose files appear whole or not at all: the old ones stay until then."""

    faults = (kill, ask_to_end, pause)
    old = b"what was there before\n"

    def __init__(self, programs, work):
        self.program = f"{programs}/stepcast"
        self.folder = f"{work}/{self.name.replace(' ', '-')}"
        os.mkdir(self.folder)
        self.prepare(self.folder)
        begin = time.monotonic()
        done(self.command(), self.folder)
        self.span_s = time.monotonic() - begin
        self.whole = {name: bytes_of(f"{self.folder}/{name}") for name in self.files}
        done(self.command(), self.folder)
        for name in self.files:
            if bytes_of(f"{self.folder}/{name}") != self.whole[name]:
                raise Lost(f"{self.name}: {name} is not the same twice")

    def prepare(self, folder):
        """What the command starts from."""

    def tried(self, folder, dice):
        self.prepare(folder)
        for name in self.files:
            with open(f"{folder}/{name}", "wb") as file:
                file.write(self.old)
        code, _ = befall(Run(self.command(), folder), dice.choice(self.faults), dice, self.span_s)
        for name in self.files:
            there = bytes_of(f"{folder}/{name}")
            kept = code != 0 and (there == self.old or self.is_part(there, self.whole[name], code))
            if there != self.whole[name] and not kept:
                raise Lost(f"exit {code}, {name} is neither the old one nor whole")
        done(self.command(), folder)
        for name in self.files:
            if bytes_of(f"{folder}/{name}") != self.whole[name]:
                raise Lost(f"{name} is another than that of a whole run")
        no_partial(folder)

    def is_part(self, there, whole, code):
        """An answer that says itself how far it got."""
        return False


class Search(Files):
    name = "stepcast search"
    files = ("plans.csv",)

    def is_part(self, there, whole, code):
        """Asked to end, a search writes the plans that it has found by then."""
        rows = [line.split(b",") for line in there.split(b"\n")]
        names = whole.split(b"\n")[0].split(b",")
        return (code in (129, 130, 143) and len(rows) > 2 and set(rows[0]) <= set(names)
                and rows[-1] == [b""] and all(len(row) == len(rows[0]) for row in rows[:-1]))

    def command(self):
        return [self.program, "search", "--model", "llama2-7b", "--gpu", "h100", "--nodes", "1",
                "--global-batch", "8", "--quiet", *few_plans, "--csv", "plans.csv"]


class Timeline(Files):
    name = "run, its files"
    files = ("t.json", "t.csv")

    def command(self):
        return [self.program, "run", "--model", "llama3-8b", "--gpu", "h100", "--gpus", "16",
                "--data", "zero3", "--local-batch", "1", "--timeline", "t.json", "--csv", "t.csv"]


class Merge(Files):
    """Shards of a sweep put together: what they left is only read."""

    name = "sweep merge"
    files = ("parts/results.json", "parts/results.h5")

    def __init__(self, programs, work):
        self.shards = f"{work}/shards"
        scenario = f"{work}/shards.toml"
        with open(scenario, "w", encoding="utf-8") as file:
            file.write(points)
        for shard in ("1/2", "2/2"):
            done([f"{programs}/stepcast", "sweep", scenario, "--out", self.shards, "--shard",
                  shard, "--quiet"], work)
        super().__init__(programs, work)

    def command(self):
        return [self.program, "sweep", "merge", "parts"]

    def prepare(self, folder):
        shutil.copytree(self.shards, f"{folder}/parts", dirs_exist_ok=True)

    def tried(self, folder, dice):
        super().tried(folder, dice)
        for name in os.listdir(self.shards):
            if name.endswith(".jsonl") and (bytes_of(f"{self.shards}/{name}") !=
                                            bytes_of(f"{folder}/parts/{name}")):
                raise Lost(f"{name} of a shard is another")


class Design(Files):
    name = "stepcast design"
    files = ("bill.csv",)

    def __init__(self, programs, work):
        self.goal = f"{work}/goal.toml"
        shipped = bytes_of(f"{source}/scenarios/design/llama3-70b-2t.toml").decode()
        with open(self.goal, "w", encoding="utf-8") as file:
            file.write(few_machines(shipped))
        super().__init__(programs, work)

    def command(self):
        return [self.program, "design", self.goal, "--quiet", "--csv", "bill.csv"]

    def is_part(self, there, whole, code):
        """Asked to end, a design writes the bills of what it has found by then."""
        return (code in (129, 130, 143) and there.endswith(b"\n")
                and there.split(b"\n")[0] == whole.split(b"\n")[0])


class Report(Files):
    """A page over one of before: over other files it does not write."""

    name = "stepcast report"
    files = ("report.html",)

    def __init__(self, programs, work):
        self.program = f"{programs}/stepcast"
        done(self.command(layers=2), work)
        self.old = bytes_of(f"{work}/report.html")
        super().__init__(programs, work)

    def command(self, layers=4):
        return [self.program, "report", "--model", "llama3-8b", "--gpu", "h100", "--nodes", "1",
                "--data", "zero3", "--local-batch", "1", "--set", f"model.layers={layers}",
                "--out", "report.html"]


def measured(programs, work):
    """Two points and a table of what they need, measured once for all writers."""
    scenario, table = f"{work}/two.toml", f"{work}/host.h5"
    if not os.path.exists(table):
        with open(scenario, "w", encoding="utf-8") as file:
            file.write(tiny + two_plans)
        done([f"{programs}/stepcast-calibrate", "run", "--device", "host", "--quick", "--for",
              scenario, "--out", table], work)
    return scenario, table


class Calibrate:
    """A table that grows: each run is cut off and gone on with. What was measured before stays, to
    the bit; in the end all is there."""

    name = "calibrate run"
    faults = (kill, kill, ask_to_end, pause)

    def __init__(self, programs, work):
        self.program = f"{programs}/stepcast-calibrate"
        self.kept = f"{work}/calibrating"
        os.mkdir(self.kept)
        begin = time.monotonic()
        self.scenario, _ = measured(programs, work)
        self.span_s = min(2.5, time.monotonic() - begin)
        self.table = f"{self.kept}/host.h5"
        self.whole = 0

    def rows(self, table):
        """What each says; a table has the columns of the kinds of rows that it holds."""
        if not os.path.exists(table):
            return set()
        text = done([self.program, "export", "--csv", table], self.kept)
        return {frozenset((name, value) for name, value in row.items() if value)
                for row in csv.DictReader(text.splitlines())}

    def tried(self, folder, dice):
        before = self.rows(self.table)
        run = Run([self.program, "run", "--device", "host", "--quick", "--resume", "--for",
                   self.scenario, "--out", self.table], folder)
        code, said = befall(run, dice.choice(self.faults), dice, self.span_s)
        after = self.rows(self.table)
        if lost := before - after:
            raise Lost(f"exit {code}, {len(lost)} rows are gone, such as {sorted(lost.pop())}")
        if code != 0:
            return
        # A task that failed on a crowded machine is told, and is no row.
        told = sum(int(n) for n in re.findall(r"(\d+) (?:measured|known before)", said))
        if len(after) != told:
            raise Lost(f"{len(after)} rows in the end: {said[-300:]}")
        no_partial(self.kept)
        os.remove(self.table)
        self.whole += 1


class ValidateRun:
    """Two points trained and compared: what is finished of them is whole; of the rest, and of the
    programs that measure them, nothing stays."""

    name = "validate run"
    faults = (kill, ask_to_end, pause)

    def __init__(self, programs, work):
        self.scenario, self.table = measured(programs, work)
        self.program = f"{programs}/stepcast-validate"
        begin = time.monotonic()
        with Folder(work) as folder:
            done(self.command(), folder, self.environment(folder))
            self.span_s = time.monotonic() - begin
            self.losses = [self.losses_of(folder, point) for point in (1, 2)]

    def command(self):
        return [self.program, "run", self.scenario, "--as-calibrated", "--table", self.table,
                "--steps", "4", "--warm-up", "1", "--ranks", "processes", "--out", "out", "--csv",
                "out.csv"]

    @staticmethod
    def environment(folder):
        """With a folder for temporary files of its own."""
        os.makedirs(f"{folder}/tmp", exist_ok=True)
        return {"TMPDIR": f"{folder}/tmp"}

    @staticmethod
    def losses_of(folder, point):
        try:
            with open(f"{folder}/out/points/{point:04}.results.json", encoding="utf-8") as file:
                return json.load(file)["losses"]
        except FileNotFoundError:
            return None

    def tried(self, folder, dice):
        environment = self.environment(folder)
        run = Run(self.command(), folder, environment)
        code, _ = befall(run, dice.choice(self.faults), dice, self.span_s)
        for point in (1, 2):
            losses = self.losses_of(folder, point)
            if losses not in ([self.losses[point - 1]] if code == 0 else
                              [self.losses[point - 1], None]):
                raise Lost(f"exit {code}, point {point} has other losses, or none")
        for name in ("out/comparison.json", "out.csv"):
            if code == 0 and not os.path.exists(f"{folder}/{name}"):
                raise Lost(f"exit 0 without {name}")
        done(self.command(), folder, environment)
        no_partial(folder)
        if left := os.listdir(f"{folder}/tmp"):
            raise Lost(f"left among temporary files: {left}")


class Cluster:
    """A cluster in a box: no process, no network device and no file of it stays."""

    name = "validate cluster"
    faults = (kill, ask_to_end, pause)

    def __init__(self, programs, work):
        _, table = measured(programs, work)
        self.program = f"{programs}/stepcast-validate"
        # A box has a memory of its own in the place of /dev/shm.
        self.elsewhere = tempfile.TemporaryDirectory(dir="/tmp")
        self.table = shutil.copy(table, self.elsewhere.name)
        self.scenario = f"{self.elsewhere.name}/nodes.toml"
        with open(self.scenario, "w", encoding="utf-8") as file:
            file.write(nodes)
        begin = time.monotonic()
        with Folder(work) as folder:
            run = Run(self.command(), folder, ValidateRun.environment(folder))
            code, said = run.end()
            if code == 77:
                raise Skipped(said.strip())
            if code != 0:
                raise Lost(f"exit {code} where nothing befell it: {said[-300:]}")
        self.span_s = time.monotonic() - begin

    def command(self):
        return [self.program, "cluster", self.scenario, "--as-calibrated", "--table", self.table,
                "--steps", "3", "--warm-up", "1", "--compute", "waits", "--csv", "box.csv"]

    def tried(self, folder, dice):
        before = set(os.listdir("/sys/class/net"))
        old = b"what was there before\n"
        with open(f"{folder}/box.csv", "wb") as file:
            file.write(old)
        run = Run(self.command(), folder, ValidateRun.environment(folder))
        code, _ = befall(run, dice.choice(self.faults), dice, self.span_s)
        there = bytes_of(f"{folder}/box.csv")
        if (there == old) if code == 0 else (there != old and not there.endswith(b"\n")):
            raise Lost(f"exit {code}, box.csv is not what it should be")
        if left := os.listdir(f"{folder}/tmp"):
            raise Lost(f"left among temporary files: {left}")
        until = time.monotonic() + patience(60.0)  # another's device comes and goes
        while left := set(os.listdir("/sys/class/net")) - before:
            if time.monotonic() > until:
                raise Lost(f"network devices are left: {left}")
            time.sleep(0.1)


class Disks:
    """Any writer on any disk that fails (disks.py says what holds)."""

    name = "disks that fail"

    def __init__(self, programs, work):
        self.programs = pathlib.Path(programs)
        self.library = disks.failing_files(self.programs)
        if not self.library.exists():
            raise Skipped("failing_files.so is not built")
        self.work = f"{work}/disks"
        os.mkdir(self.work)
        os.chdir(self.work)
        shutil.copy(measured(programs, work)[1], "host.h5")
        missing = disks.fixtures(self.programs, pathlib.Path(source))
        self.writers = [w for w in disks.writers(pathlib.Path(source)) if w.needs not in missing]
        self.whole = {}

    def tried(self, folder, dice):
        os.chdir(self.work)
        wrong = None
        while wrong is None:  # there may be no such call
            writer = dice.choice(self.writers)
            if writer.name not in self.whole:
                self.whole[writer.name] = disks.Tried(self.programs, writer)
            one = self.whole[writer.name]
            if one.done.returncode != 0:
                raise Lost(f"{writer.name}: exit {one.done.returncode} on a good disk")
            disk = one.some_disk(self.library, dice)
            wrong = one.faults(disk, dice.random() < 0.5)
        if wrong:
            raise Lost(f"{writer.name}, {disk.text}: {'; '.join(wrong)}")


# Of so many runs so many are each one's.
writers = ((Trainer, 50), (Nodes, 12), (TwoTrainers, 6), (Sweep, 12), (TwoSweeps, 6), (Merge, 6),
           (Search, 4), (Design, 2), (Timeline, 10), (Report, 4), (Calibrate, 4), (ValidateRun, 3),
           (Cluster, 1), (Disks, 30))
