#!/usr/bin/env python3
"""Holds speed by instruction counts, which do not depend on the clock: each case is run under
callgrind and compared with tests/bench/instructions.tsv. More than 5 % above it fails.

  gate.py PROGRAMS SOURCE [CASE ...]         compares
  gate.py PROGRAMS SOURCE --update [CASE ...] writes what fell, and a rise that CHANGES.md accepts:
                                             a line there with `gate: CASE`
  --counts FILE                              in place of tests/bench/instructions.tsv

Exit codes: 0 all within 5 %; 1 a case is above, or its rise is not in CHANGES.md; 77 not counted:
no valgrind, no stepcast_gate, or another compiler than the one the counts are of.
"""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

ALLOWED = 1.05
HEAD = "case\tinstructions\tbest\n"
STEP = "run --gpu h100 --quiet --json --threads 1 --sequence 4096"
LARGE = f"{STEP} --model llama2-70b --tensor 4 --pipeline 4 --micro-batch 1 --data zero2 " \
    "--fabric rail-optimized --framework pytorch-fsdp2@2.3 --ignore-memory"
# Whole processes; {work}: a folder with the files that prepare() makes.
PROCESSES = {
    "help": "stepcast --help",
    "process-1b": f"stepcast {STEP} --model llama2-1b --nodes 1 --data zero2 --local-batch 2",
    "folded-131072": f"stepcast {LARGE} --nodes 16384 --global-batch 131072",
    "search-1000": "stepcast search {work}/thousand.toml --quiet --json --threads 1",
    "sweep-100": "stepcast sweep {work}/hundred.toml --quiet --json --threads 1",
    "why-7b": "stepcast why --model llama2-7b --gpu h100 --nodes 16 --data zero2 --local-batch 2 "
              "--json",
    "published-60": "stepcast-validate published {work}/sixty.csv --quiet --threads 1",
}
CALLS = 5  # of stepcast.run within one Python, after the first


class Skipped(Exception):
    pass


def prepare(source, work):
    with open(f"{work}/hundred.toml", "w") as out:
        out.write('[model]\nname = "llama2-1b"\n[cluster]\nnode = "dgx-h100"\n[batch]\nlocal = 1\n'
                  f'[sweep]\n"model.sequence" = {list(range(1024, 1024 + 100 * 64, 64))}\n')
    with open(f"{work}/thousand.toml", "w") as out:  # 1,152 plans before what is illegal
        out.write('[model]\nname = "llama2-70b"\n[cluster]\nnode = "dgx-h100"\nnodes = 32\n'
                  '[batch]\nglobal = 512\n[software]\nframework = "pytorch-fsdp2"\n[space.plan]\n'
                  'tensor = [2, 4, 8]\npipeline = [2, 4, 8, 16]\nvirtual_stages = [1, 5]\n'
                  'data = ["ddp", "zero1", "zero2", "zero3"]\nsequence_parallel = [false, true]\n'
                  'recompute = ["none", "selective", "full"]\nrecompute_every = 1\ncontext = 1\n'
                  'shard_degree = 0\nreduce = "software"\nprefetch = 1\n'
                  'stage_layers = "software"\n[space.batch]\nmicro_batch = [1, 2]\n')
    with open(f"{source}/validate/published/training.csv") as rows:
        lines = rows.readlines()
    data = [i for i, line in enumerate(lines) if not line.startswith("#")]
    with open(f"{work}/sixty.csv", "w") as out:  # the heading and every so many of the rows
        body = data[1:]
        out.writelines(lines[i] for i in [data[0]] + body[:: max(1, len(body) // 60)][:60])


def counted(words, work, name, toggle=None):
    """Instructions of a command that must end well; of what `toggle` calls alone, if given."""
    file = f"{work}/{name}.callgrind"
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={file}"]
    if toggle:
        valgrind += ["--collect-atstart=no", f"--toggle-collect={toggle}"]
    env = dict(os.environ, PYTHONHASHSEED="0", LC_ALL="C")
    done = subprocess.run(valgrind + words, env=env, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise SystemExit(f"gate: {name}: {' '.join(words)}: exit {done.returncode}\n"
                         + done.stdout[-500:] + done.stderr[-1500:])
    with open(file) as profile:
        for line in profile:
            if line.startswith("totals:") or line.startswith("summary:"):
                return int(line.split()[1])
    raise SystemExit(f"gate: {name}: no count in {file}")


def python_call(programs, work):
    python = "/usr/bin/python3"
    if not any(name.startswith("_session") for name in os.listdir(f"{programs}/python/stepcast")):
        raise Skipped("no Python module was built")
    text = ("import sys; sys.path.insert(0, sys.argv[1])\nimport stepcast\n"
            "for _ in range(int(sys.argv[2])):\n"
            "    stepcast.run(model='llama2-1b', gpu='h100', nodes=1, data='zero2', local_batch=2)")
    # -B: who imports the package first must not compile it for the other.
    words = [python, "-I", "-B", "-c", text, f"{programs}/python"]
    few, many = (counted([*words, str(1 + calls)], work, f"python-{calls}")
                 for calls in (0, CALLS))
    return (many - few) // CALLS


def count(name, programs, work):
    if name == "python-call":
        return python_call(programs, work)
    if name in PROCESSES:
        words = PROCESSES[name].format(work=work).split()
        return counted([f"{programs}/{words[0]}"] + words[1:], work, name)
    return counted([f"{programs}/stepcast_gate", name], work, name, "stepcast_gate_measured")


def points(programs):
    """The cases of stepcast_gate, which names them when called without one."""
    return subprocess.run([f"{programs}/stepcast_gate"], capture_output=True, text=True,
                          check=False).stdout.split()


def compiler(programs):
    with open(f"{programs}/CMakeCache.txt") as cache:
        path = re.search(r"^CMAKE_CXX_COMPILER:[^=]*=(.*)$", cache.read(), re.M).group(1)
    return subprocess.run([path, "--version"], capture_output=True, text=True,
                          check=True).stdout.splitlines()[0].strip()


def read(file):
    """(compiler, {case: (instructions, best)})"""
    kind, rows = None, {}
    if os.path.exists(file):
        with open(file) as lines:
            for line in lines:
                if line.startswith("# compiler: "):
                    kind = line[12:].strip()
                elif not line.startswith("#") and line != HEAD:
                    name, now, best = line.split("\t")
                    rows[name] = (int(now), int(best))
    return kind, rows


def write(file, kind, rows):
    with open(file, "w") as out:
        out.write("# Instructions of the cases of ./dev bench gate, by callgrind: as accepted, and the "
                  "least ever.\n" f"# compiler: {kind}\n{HEAD}")
        for name in sorted(rows):
            out.write(f"{name}\t{rows[name][0]}\t{rows[name][1]}\n")


def accepted(source):
    with open(f"{source}/CHANGES.md") as changes:
        return set(re.findall(r"`gate:\s+([a-z0-9-]+)`", changes.read()))


def main():
    words = sys.argv[1:]
    update = "--update" in words
    words = [w for w in words if w != "--update"]
    file = None
    if "--counts" in words:
        at = words.index("--counts")
        file = words[at + 1]
        del words[at:at + 2]
    if len(words) < 2:
        print(__doc__)
        return 2
    programs, source, only = os.path.abspath(words[0]), os.path.abspath(words[1]), words[2:]
    file = file or f"{source}/tests/bench/instructions.tsv"
    if shutil.which("valgrind") is None or not os.path.exists(f"{programs}/stepcast_gate"):
        print("gate: not counted: needs valgrind and stepcast_gate (./dev bench gate)")
        return 77
    kind, rows = read(file)
    here = compiler(programs)
    if kind not in (None, here) and not update:
        print(f"gate: not counted: the counts are of {kind}, this is {here}")
        return 77
    names = sorted([*PROCESSES, *points(programs), "python-call"])
    for name in only:
        if name not in names:
            print(f"gate: no case {name}; there are: {' '.join(names)}")
            return 2
    names = only or names
    status = 0
    changes = accepted(source)
    with tempfile.TemporaryDirectory() as work:
        prepare(source, work)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            counts = {name: pool.submit(count, name, programs, work) for name in names}
            print(f"{'case':<26}{'million instructions':>22}{'of accepted':>13}{'of best':>10}")
            for name in names:
                try:
                    now = counts[name].result()
                except Skipped as reason:
                    print(f"{name:<26}skipped: {reason}")
                    continue
                then, best = rows.get(name, (None, None))
                if then is None:
                    print(f"{name:<26}{now / 1e6:>22.2f}{'new':>13}")
                    rows[name] = (now, now)
                    if not update:
                        status = 1
                    continue
                risen = now > ALLOWED * then
                verdict = ""
                if update and (now < then or name in changes):
                    rows[name] = (now, min(now, best))
                elif risen:
                    verdict = "  ABOVE: mend it, or say why in CHANGES.md (`gate: %s`) and " \
                        "./dev bench gate --update" % name
                    status = 1
                print(f"{name:<26}{now / 1e6:>22.2f}{now / then:>13.3f}{now / best:>10.3f}{verdict}")
    for name, (then, best) in sorted(rows.items()):
        if then > ALLOWED * best and name not in changes:
            print(f"gate: {name}: {then / best:.3f} of its best, and no `gate: {name}` in CHANGES.md")
            status = 1
    if update:
        write(file, here, rows)
    return status


if __name__ == "__main__":
    sys.exit(main())
