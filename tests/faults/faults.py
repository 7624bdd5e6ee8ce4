"""Random faults over short runs of every writer; prints how many were tried and lost.
   python3 faults.py FOLDER_OF_PROGRAMS [N|SECONDSs] [--each N] [--seed N] [--writer NAME]"""

import argparse
import os
import shutil
import sys
import tempfile
import time

from harness import Folder, Lost, Skipped, dice_of
from writers import writers


def read_arguments():
    parser = argparse.ArgumentParser(prog="faults")
    parser.add_argument("programs")
    parser.add_argument("amount", nargs="?", default="1000", help="runs, or seconds as in 60s")
    parser.add_argument("--each", type=int, help="so many runs of every writer")
    parser.add_argument("--seed", default=str(time.time_ns()))
    parser.add_argument("--writer", help="a word of its name")
    return parser.parse_args()


def main():
    arguments = read_arguments()
    timed = arguments.amount.endswith("s")
    amount = float(arguments.amount.rstrip("s"))
    programs = os.path.abspath(arguments.programs)
    print(f"seed {arguments.seed}", flush=True)
    fast = "/dev/shm"  # nothing here is about the disk: syncing one would take most of the time
    under = fast if os.access(fast, os.W_OK) else None
    work = tempfile.mkdtemp(prefix="stepcast-faults-", dir=under)
    print(f"{'writer':<24}{'tried':>8}{'lost':>8}{'seconds':>9}", flush=True)
    chosen = [(w, s) for w, s in writers if (arguments.writer or "") in w.name]
    total = sum(share for _, share in chosen)
    lost_of_all = 0
    for kind, share in chosen:
        begin = time.monotonic()
        try:
            writer = kind(programs, work)
        except Skipped as reason:
            print(f"{kind.name:<24}{0:>8}{0:>8}         skipped: {reason}", flush=True)
            continue
        except Lost as reason:
            sys.exit(f"faults: {kind.name}: {reason}")
        part = arguments.each or max(1.0, amount * share / total)
        tried, lost = 0, []
        while (time.monotonic() - begin if timed and not arguments.each else tried) < part:
            with Folder(work) as folder:
                try:
                    writer.tried(folder, dice_of(arguments.seed, f"{writer.name}/{tried}"))
                except Lost as reason:
                    lost.append(f"{tried}: {reason}")
            tried += 1
        took = time.monotonic() - begin
        print(f"{writer.name:<24}{tried:>8}{len(lost):>8}{took:>9.0f}", flush=True)
        for reason in lost[:5]:
            print(f"    {reason}", flush=True)
        lost_of_all += len(lost)
    shutil.rmtree(work, ignore_errors=True)
    return 1 if lost_of_all else 0


if __name__ == "__main__":
    sys.exit(main())
