"""The writers: what each runs, what may befall it, and what must be there afterwards."""

import json
import os
import time

from harness import (Lost, Proxy, Run, ask_to_end, befall, bytes_of, done, free_port, hang, kill,
                     kill_child, partial_files, pause)

tiny = """
[model]
name = "tiny"
layers = 2
hidden = 32
heads = 2
kv_heads = 2
head_dim = 16
ffn_hidden = 48
vocab = 64
norm = "rmsnorm"
activation = "swiglu"
rope = true
sequence = 16
[cluster]
node = "host"
[batch]
local = 2
[precision]
compute = "fp32"
gradient_reduce = "fp32"
[software]
framework = "stepcast-trainer"
"""

points = """
[model]
name = "llama3-8b"
[cluster]
node = "dgx-h100"
nodes = 2
[plan]
data = "zero3"
[batch]
local = 1
[sweep]
"model.layers" = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]
"batch.local" = [1, 2]
"""


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

    def command(self, steps, out="r.json", patience="8 s", ranks=None):
        return [self.program, self.scenario, "--ranks", ranks or self.ranks, "--steps", str(steps),
                "--warm-up", "0", "--patience", patience, "--out", out, "--quiet"]

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
        patience = "1 s" if fault is hang else "8 s"
        run = Run(self.saving(self.steps, patience=patience), folder)
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
        port = free_port(dice)
        silent = dice.random() < 0.05
        proxy = Proxy(port, int(10 ** dice.uniform(0.0, 6.0)), resets=not silent)
        runs = []
        for node, at in ((0, port), (1, proxy.port)):
            command = self.saving(self.steps, out=f"r{node}.json",
                                  patience="1.5 s" if silent else "8 s")
            command += ["--nodes", "2", "--node", str(node), "--rendezvous", f"127.0.0.1:{at}"]
            runs.append(Run(command, folder, {"STEPCAST_TRAINER_TOKEN": "faults"}))
        ends = [run.end() for run in runs]
        proxy.close()
        for code, said in ends:
            if code not in (0, 6):
                raise Lost(f"exit {code} after a reset: {said[-300:]}")
        if os.path.exists(f"{folder}/r0.json"):
            os.rename(f"{folder}/r0.json", f"{folder}/r.json")
        self.check(folder, ends[0][0])


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
        begin = time.monotonic()
        done(self.command(), self.folder)
        self.span_s = time.monotonic() - begin
        self.whole = {name: bytes_of(f"{self.folder}/{name}") for name in self.files}
        done(self.command(), self.folder)
        for name in self.files:
            if bytes_of(f"{self.folder}/{name}") != self.whole[name]:
                raise Lost(f"{self.name}: {name} is not the same twice")

    def tried(self, folder, dice):
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
        return (code in (129, 130, 143) and len(rows) > 2 and rows[0] == names
                and rows[-1] == [b""] and all(len(row) == len(names) for row in rows[:-1]))

    def command(self):
        return [self.program, "search", "--model", "llama2-7b", "--gpu", "h100", "--nodes", "1",
                "--global-batch", "8", "--framework", "pytorch-fsdp2", "--quiet", "--fix",
                "plan.reduce=software", "--fix", "plan.prefetch=1", "--fix",
                "plan.recompute_every=1", "--fix", "plan.data=zero3", "--csv", "plans.csv"]


class Timeline(Files):
    name = "run, its files"
    files = ("t.json", "t.csv")

    def command(self):
        return [self.program, "run", "--model", "llama3-8b", "--gpu", "h100", "--gpus", "16",
                "--data", "zero3", "--local-batch", "1", "--timeline", "t.json", "--csv", "t.csv"]


# Of a hundred runs so many are each one's.
writers = ((Trainer, 50), (Nodes, 12), (TwoTrainers, 6), (Sweep, 12), (TwoSweeps, 6), (Search, 4),
           (Timeline, 10))
