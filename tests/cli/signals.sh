# A signal that asks a program to end, at the moment it opens its first input: Ctrl-C, SIGTERM and
# SIGHUP are the same to it. What keeps something listens before it reads: it ends by itself with
# the signal's code; what was there before stays.
# Usage: signals.sh FOLDER_OF_PROGRAMS SOURCE_FOLDER
set -u
export programs="$1" source="$2"
# Open MPI keeps what it had of a sweep that was asked to end.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"
# shellcheck source=tests/cli/shared/patience.sh
. "$2/tests/cli/shared/patience.sh"
# shellcheck source=tests/cli/shared/signals.sh
. "$2/tests/cli/shared/signals.sh"
cd "$work" || exit 1
patience=$(patience 120)
export patience
"$python" - <<'PYTHON'
import os
import shutil
import signal
import subprocess
import sys

programs, source = os.environ["programs"], os.environ["source"]
sys.path.insert(0, source + "/tests/faults")
from scenarios import points, tiny

os.mkdir("in")
shutil.copy(source + "/scenarios/design/llama3-70b-2t.toml", "in/goal.toml")
shutil.copy(source + "/validate/published/mlgv.csv", "in/mlgv.csv")
for name, text in (("tiny", tiny), ("points", points), ("one", points[:points.index("[sweep]")])):
    with open(f"in/{name}.toml", "w", encoding="utf-8") as file:
        file.write(text)

commands = [
    "stepcast run in/one.toml --out out --csv old.csv",
    "stepcast sweep in/points.toml --out out --csv old.csv",
    "stepcast search in/one.toml --csv old.csv",
    "stepcast design in/goal.toml --csv old.csv",
    "stepcast compare in/one.toml in/one.toml --csv old.csv",
    "stepcast report in/one.toml --out out.html",
    "stepcast-calibrate run --device host --quick --for in/tiny.toml --out out.h5",
    "stepcast-validate run in/tiny.toml --as-calibrated --csv old.csv",
    "stepcast-validate published in/mlgv.csv --csv old.csv",
    "stepcast-validate study --quiet",
    "stepcast-sweep in/points.toml --out out",
    "stepcast-trainer in/tiny.toml --steps 2 --warm-up 0 --out old.csv",
]
# Nothing of these has begun when the signal comes: it ends them as it ends any program.
ended_by_it = ("stepcast-trainer",)

failures = tried = 0
for command in commands:
    words = command.split()
    if not os.path.exists(f"{programs}/{words[0]}"):
        print(f"skipped: no {words[0]}")
        continue
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        shutil.rmtree("out", ignore_errors=True)
        for name in ("said", "out.html", "out.h5"):
            if os.path.exists(name):
                os.remove(name)
        with open("old.csv", "w", encoding="utf-8") as file:
            file.write("old\n")
        # Of study, which finds its scenarios itself, what it reads is the catalogue.
        under = os.path.realpath("in") if "in/" in command else os.path.realpath(
            source + "/scenarios")
        done = subprocess.run(
            [f"{programs}/{words[0]}", *words[1:]], capture_output=True, text=True, check=False,
            timeout=int(os.environ["patience"]), preexec_fn=lambda: [signal.signal(n, signal.SIG_DFL) for n in (
                signal.SIGINT, signal.SIGTERM, signal.SIGHUP)],
            env={**os.environ, "LD_PRELOAD": os.environ["STEPCAST_FAILING_FILES"],
                 "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                 "STEPCAST_FAIL": f"signal {int(number)} 1", "STEPCAST_FAIL_UNDER": under,
                 "STEPCAST_FAIL_SAID": os.path.realpath(".") + "/said"})
        wanted = -number if words[0] in ended_by_it else 128 + number
        wrong = []
        if not os.path.exists("said"):
            wrong.append("opened nothing")
        if done.returncode != wanted:
            wrong.append(f"exit {done.returncode}, wanted {wanted}: {done.stderr[-200:]}")
        with open("old.csv", encoding="utf-8") as file:
            if file.read() != "old\n":
                wrong.append("the file of before is another")
        left = [name for _, _, names in os.walk(".") for name in names if "partial" in name]
        if left:
            wrong.append(f"left: {left}")
        for reason in wrong:
            print(f"{command}, {number.name}: {reason}")
        failures += bool(wrong)
        tried += 1
print(f"{tried} signals, {failures} faults")
sys.exit(failures > 0)
PYTHON
