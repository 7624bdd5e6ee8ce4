#!/bin/sh
# What the keys of nodes and fabrics and the type of a collective do, as a user meets it.
#   network.sh FOLDER_OF_PROGRAMS SOURCE
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"

"$python" - "$1/stepcast" "$2" "$work" <<'END'
import json, math, subprocess, sys

program, source, work = sys.argv[1:]


def run(*words, status=0):
    done = subprocess.run([program, *words], capture_output=True, text=True)
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
    return done


def collective(kind, *words, size="1MiB", gpu="h100", **settings):
    options = [option for key, value in settings.items()
               for option in ("--set", f"cluster.{key.replace('__', '.')}={value}")]
    if "--nccl" not in words:
        words += ("--nccl", "2.20")
    return json.loads(run("collective", kind, "--gpu", gpu, "--fabric", "rail-optimized", "--bytes",
                          size, "--explain", "--json", *words, *options).stdout)


def warned(report, *words):
    return any(all(word in warning for word in words) for warning in report.get("warnings", []))


def near(a, b):
    return math.isclose(a, b, rel_tol=1e-6, abs_tol=2e-6)


# --- Latencies: the difference from the catalogue's, times the hops of the path ---

# A ring of N nodes crosses between them N times in an AllGather, 2N in an AllReduce; up to 32 nodes
# share a leaf, so a hop is NIC, cable, switch, cable, NIC; the GPU reaches its NIC over two links.
passes = {"node__nic_latency": 2, "fabric__cable_latency": 2, "fabric__switch_latency": 1,
          "node__pcie_latency": 4}
catalogue = {"node__nic_latency": 0.24, "fabric__cable_latency": 0.1,
             "fabric__switch_latency": 0.13, "node__pcie_latency": 0.5}
for nodes in (2, 4, 16):
    plain = collective("all_gather", "--nodes", str(nodes))
    assert plain["algorithm"] == "ring", plain["algorithm"]
    for key, number in passes.items():
        for more in (0.5, 5, 50):
            long = collective("all_gather", "--nodes", str(nodes),
                              **{key: f"{catalogue[key] + more} us"})
            assert near(long["time_us"] - plain["time_us"], nodes * number * more), (nodes, key)
            wires = [t for t in long["explanation"]["terms"] if t["term"] == "wires between nodes"]
            assert len(wires) == 1 and wires[0]["count"] == nodes, wires
            assert near(wires[0]["each_us"], number * more)

# Beyond a leaf two hops of the ring go over a spine: two switches and two cables more.
plain = collective("all_gather", "--nodes", "64")
long = collective("all_gather", "--nodes", "64", fabric__cable_latency="10.1 us")
assert near(long["time_us"] - plain["time_us"], 10 * (62 * 2 + 2 * 4))
long = collective("all_gather", "--nodes", "64", fabric__switch_latency="10.13 us")
assert near(long["time_us"] - plain["time_us"], 10 * (62 * 1 + 2 * 3))

# In a node: GPU, NVSwitch, GPU at every step of a ring; NVLS fetches a sum and sends it to all.
plain = collective("all_gather", "--nccl", "2.18", size="8KiB")
long = collective("all_gather", "--nccl", "2.18", size="8KiB", node__nvlink_latency="1.3 us")
assert plain["algorithm"] == "ring" and near(long["time_us"] - plain["time_us"], 7 * 2)
plain, long = (collective("all_reduce", size="1GiB", **more)
               for more in ({}, {"node__nvlink_latency": "1.3 us"}))
assert plain["algorithm"] == "nvls" and near(long["time_us"] - plain["time_us"], 2 * 2)
# A message, a tree of two levels up and down, PCIe and the sockets between.
plain, long = (collective("send_receive", "--nodes", "2", **more)
               for more in ({}, {"fabric__cable_latency": "1 s"}))
assert near(long["time_us"] - plain["time_us"], 2 * 1e6)
plain, long = (collective("all_reduce", "--nodes", "4", "--nccl-env", "NCCL_ALGO=Tree", **more)
               for more in ({}, {"fabric__cable_latency": "1.1 us"}))
assert near(long["time_us"] - plain["time_us"], 2 * 2 * 2)
plain, long = (collective("all_gather", "--set", "cluster.node=\"pcie4-8\"", gpu="a100", size="8KiB")
               if not more else
               collective("all_gather", gpu="a100", size="8KiB", node__name="pcie4-8", **more)
               for more in ({}, {"node__socket_latency": "1.15 us"}))
assert near(long["time_us"] - plain["time_us"], 7 * 2 / 8)  # two of the ring's eight hops

# Shorter wires save their difference, and a catalogue machine written out in full saves nothing.
plain = collective("all_gather", "--nodes", "4")
assert near(collective("all_gather", "--nodes", "4", fabric__cable_latency="0 us")["time_us"],
            plain["time_us"] - 4 * 2 * 0.1)
run("collective", "all_gather", "--gpu", "h100", "--nodes", "4", "--bytes", "1MiB", "--nccl", "2.20",
    "--out", f"{work}/out")
again = json.loads(run("run", f"{work}/out/scenario.toml", "--json").stdout)
assert again["time_us"] == plain["time_us"] and "warnings" not in again

# Measured curves take the difference too, and are derived then.
plain = collective("all_reduce", "--nodes", "2", size="1GiB")
assert plain["provenance"] == "measured", plain["provenance"]
long = collective("all_reduce", "--nodes", "2", size="1GiB", fabric__cable_latency="1.1 us")
wires = [t for t in long["explanation"]["terms"] if t["term"] == "wires between nodes"]
assert near(long["time_us"] - plain["time_us"], wires[0]["total_us"]) and wires[0]["each_us"] == 2
assert long["provenance"] == "derived", long["provenance"]

# A training step: slower with every microsecond of cable.
steps = [json.loads(run("run", "--model", "llama2-1b", "--gpu", "h100", "--nodes", "2", "--data",
                        "zero3", "--local-batch", "2", "--json", "--fabric", "rail-optimized", "--set",
                        f"cluster.fabric.cable_latency={latency} us").stdout)["step_time_s"]
         for latency in ("0.1", "100.1", "200.1")]
assert steps[0] < steps[1] < steps[2], steps

# --- A machine that is no copy says to what it was referred ---

node = open(f"{source}/scenarios/nodes/dgx-h100.toml").read().split("[sources]")[0]
with open(f"{work}/mine.toml", "w") as file:
    file.write(node.replace('name = "dgx-h100"', 'name = "mine"')
               .replace('nic_latency = "0.24 us"\n', ""))
mine = json.loads(run("collective", "all_gather", "--node", f"{work}/mine.toml", "--nodes", "4",
                      "--bytes", "1MiB", "--nccl", "2.20", "--json").stdout)
assert warned(mine, "mine", "dgx-h100"), mine.get("warnings")
assert mine["time_us"] == collective("all_gather", "--nodes", "4")["time_us"]

# --- Keys that do less than they say are named ---

assert warned(collective("all_reduce", "--nodes", "2", node__nic="800 Gbit/s"), "PCIe", "63")
assert warned(collective("all_reduce", node__max_power="1 W"), "max_power")
assert warned(collective("all_reduce", node__nvswitches="6"), "nvswitches")
assert warned(collective("all_reduce", node__socket="1 GB/s"), "socket")
assert warned(collective("all_reduce", node__socket_latency="1 ms"), "socket_latency")
assert warned(collective("all_reduce", node__pcie="70 GB/s"), "pcie")
assert warned(collective("all_reduce", node__plugin_latency="75 us"), "plugin_latency")
assert warned(collective("all_reduce", fabric__cable_latency="1 s"), "cable_latency")
assert warned(collective("all_reduce", "--nodes", "4", fabric__ports="128"), "ports")
asked = collective("all_reduce", "--nodes", "4")  # of an NCCL that its measured curve does not ask for
assert all(w.startswith("cluster.nccl moves no") for w in asked.get("warnings", [])), asked

# Twice the NVLink is twice the NVLink, whatever moves over it and whoever says so. H100's AllReduce
# gains less: NCCL leaves NVLS for Ring, which moves more bytes.
for kind in ("all_reduce", "all_gather", "all_to_all", "send_receive"):
    for gpu in ("h100", "v100"):
        gpus = ("--set", "cluster.gpus=2") if kind == "send_receive" else ()
        plain = collective(kind, *gpus, gpu=gpu, size="4GiB")
        fast = collective(kind, *gpus, gpu=gpu, size="4GiB", node__nvlink_per_link="50 GB/s")
        least = 1.5 if (kind, gpu) == ("all_reduce", "h100") else 1.7
        assert least < plain["time_us"] / fast["time_us"] < 2.3, (kind, gpu, plain["time_us"],
                                                                  fast["time_us"])
        by_gpu = collective(kind, *gpus, gpu=gpu, size="4GiB",
                            node__gpu__nvlink="900 GB/s" if gpu == "h100" else "300 GB/s")
        assert by_gpu["time_us"] == fast["time_us"], (kind, gpu)
both = run("collective", "all_reduce", "--gpu", "h100", "--bytes", "1MiB", "--set",
           "cluster.node.nvlink_per_link=50 GB/s", "--set", "cluster.node.gpu.nvlink=450 GB/s",
           status=3)
assert "state one of them" in both.stderr, both.stderr

# A curve that the fabric stretches was not measured on this one.
full, thin = (collective("all_reduce", "--nodes", "16", size="1GiB", **more)
              for more in ({}, {"fabric__name": "fat-tree", "fabric__oversubscription": "28"}))
assert full["provenance"] in ("measured", "interpolated") and thin["provenance"] == "derived"
assert thin["time_us"] > 2 * full["time_us"]
# Cables below the NICs' speed are as narrow as uplinks, and a NIC sends no faster than its PCIe link.
slow = collective("all_reduce", "--nodes", "16", size="1GiB", fabric__link="100 Gbit/s")
assert 3.5 < slow["time_us"] / full["time_us"] < 4.1 and slow["provenance"] == "derived"
slow = collective("all_gather", "--nodes", "8", size="1GiB", node__pcie="25 GB/s")
assert 1.6 < slow["time_us"] / collective("all_gather", "--nodes", "8", size="1GiB")["time_us"] < 2.1

# --- The type of a collective ---

# NVLink SHARP sums no fp8; data that is only moved is bytes.
wide, narrow = (collective("all_reduce", "--nccl", "2.24", "--dtype", dtype, size="1GiB")
                for dtype in ("bf16", "fp8"))
assert wide["algorithm"] == "nvls" and narrow["algorithm"] == "ring"
assert narrow["time_us"] > wide["time_us"] and narrow["dtype"] == "fp8"
for kind in ("all_gather", "broadcast", "all_to_all", "send_receive"):
    assert (collective(kind, "--dtype", "fp8", size="1GiB")["time_us"] ==
            collective(kind, "--dtype", "bf16", size="1GiB")["time_us"]), kind
# Beyond 8 ranks a ring loses too much of fp8 sums: Tree runs, and the ring's handicap is named
# instead of 44 s that nobody would wait.
far = collective("all_reduce", "--nodes", "4", "--nccl", "2.24", "--dtype", "fp8", size="8GiB")
assert far["algorithm"] == "tree", far["algorithm"]
for option in far["explanation"]["nccl_options"]:
    assert option["handicap"] == (1024 if option["algorithm"] == "ring" else 1), option
    assert option["estimate_us"] < 1e6, option
text = run("collective", "all_reduce", "--gpu", "h100", "--nodes", "4", "--bytes", "8GiB", "--nccl",
           "2.24", "--dtype", "fp8", "--explain").stdout
assert "kept for last (x 1024)" in text and "nvls" not in text, text
# ReduceScatter has nothing but the ring.
assert collective("reduce_scatter", "--nodes", "4", "--nccl", "2.24", "--dtype", "fp8",
                  size="1GiB")["algorithm"] == "ring"
for words in (("--gpu", "h100", "--nccl", "2.23"), ("--gpu", "a100", "--nccl", "2.24")):
    refused = run("collective", "all_reduce", "--bytes", "1GiB", "--dtype", "fp8", *words, status=3)
    assert "all_reduce of fp8" in refused.stderr and "take bf16" in refused.stderr, refused.stderr
    run("collective", "all_gather", "--bytes", "1GiB", "--dtype", "fp8", *words)

# --- The picture of a cluster ---

for nodes in ("1", "4", "512"):
    run("show", "cluster", "--gpu", "h100", "--nodes", nodes, "--graphviz", f"{work}/dot")
    text = open(f"{work}/dot").read()
    assert text.count("shape=") <= 40 and text.count("subgraph cluster_") >= 1, text
run("show", "cluster", "--gpu", "h100", "--nodes", "4", "--graphviz", f"{work}/dot", "--all")
text = open(f"{work}/dot").read()
assert all(f'"node{n}/gpu{g}"' in text for n in range(4) for g in range(8))
assert text.count("subgraph cluster_") == 4 + 2
END
