#!/bin/sh
# Racks as a user meets them: in the catalogue, in collectives, resized, refused.
#   rack.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"

"$python" - "$1/stepcast" "$work" <<'END'
import json, subprocess, sys

program, work = sys.argv[1:]


def run(*words, status=0):
    done = subprocess.run([program, *words], capture_output=True, text=True)
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
    return done


def collective(kind, *words):
    return json.loads(run("collective", kind, "--nccl", "2.28", "--json", *words).stdout)


# --- The catalogue ---
clusters = run("show", "clusters").stdout
for name in ("gb200-nvl72", "gb200-nvl72-36x2", "gb300-nvl72", "dgx-b200", "dgx-b300", "hgx-h20", "l40s-8", "quantum-2",
             "quantum-x800", "spectrum-x-400", "spectrum-x-800"):
    assert name in clusters, name
assert "72 x gb200" in clusters

# --- A rack is one node of NCCL's: published 835 to 847 GB/s over 72, 838 to 846 over 8 B200 ---
rack = collective("all_reduce", "--gpu", "gb200", "--bytes", "8GiB")
assert rack["algorithm"] == "nvls" and 825 < rack["busbw_gb_per_s"] < 857, rack
box = collective("all_reduce", "--gpu", "b200", "--bytes", "16GiB")
assert box["algorithm"] == "nvls" and 825 < box["busbw_gb_per_s"] < 857, box

# --- Powers of two leave GPUs idle: 256 GPUs are 4 racks x 64 ---
wrong = run("collective", "all_gather", "--node", "gb200-nvl72", "--gpus", "256", "--bytes", "64MiB",
            status=3)
assert "gpus_per_domain" in wrong.stderr, wrong.stderr
used = collective("all_gather", "--node", "gb200-nvl72", "--gpus", "256", "--bytes", "1GiB",
                  "--set", "cluster.gpus_per_domain=64", "--explain")
assert used["busbw_gb_per_s"] > 0

# --- What if the domain were another size: one number ---
times = []
for gpus in (8, 16, 32, 64, 144, 288, 576):
    report = collective("all_to_all", "--node", "gb200-nvl72", "--gpus", "576", "--bytes", "1GiB",
                        "--set", f"cluster.gpus_per_domain={gpus}")
    times.append(report["time_us"])
assert times == sorted(times, reverse=True) and times[0] > 5 * times[-1], times

# --- Stepped over a rack's own links, beside the closed form ---
both = collective("all_gather", "--node", "gb200-nvl72", "--nodes", "2", "--bytes", "256MiB",
                  "--set", "cluster.gpus_per_domain=16", "--stepped")["stepped"]
assert 0.8 < both["ratio"] < 1.3, both["ratio"]

# --- One TOML describes a rack; what does not fit together is refused ---
with open(f"{work}/rack.toml", "w") as file:
    file.write("""
kind = "nvswitch"
gpu = "gb200"
gpus = 36
gpus_per_tray = 4
nvswitches = 9
nvlink_per_link = "50 GB/s"
nics = 36
nic = "400 Gbit/s"
pcie_switches = 36
pcie = "63 GB/s"
sockets = 18
socket = "100 GB/s"
cpu = "arm"
""")
own = run("collective", "all_reduce", "--node", f"{work}/rack.toml", "--nccl", "2.28", "--bytes",
          "1GiB").stdout
assert "nvls" in own, own
bad = run("collective", "all_reduce", "--node", "gb200-nvl72", "--bytes", "1GiB", "--set",
          "cluster.node.nics=70", status=3)
assert "no equal trays" in bad.stderr, bad.stderr
bad = run("collective", "all_reduce", "--node", "gb200-nvl72", "--bytes", "1GiB", "--set",
          "cluster.gpus_per_domain=66", status=3)
assert "whole trays" in bad.stderr, bad.stderr
bad = run("collective", "all_reduce", "--node", "gb200-nvl72", "--bytes", "1GiB", "--set",
          "cluster.exchange=deepep-v3", status=3)
assert "deepep-v" in bad.stderr, bad.stderr
shown = run("show", "cluster", "--node", "gb200-nvl72", "--nodes", "8").stdout
assert "18 trays of 4 GPUs and 4 NICs" in shown and "4 rails" in shown, shown
END
