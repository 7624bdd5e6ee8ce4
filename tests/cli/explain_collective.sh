#!/bin/sh
# stepcast collective ... --explain: channels, terms, the busiest link, NCCL's own estimates.
#   explain_collective.sh FOLDER_OF_PROGRAMS SOURCE
set -u
program=$1/stepcast
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"

expect 0 "nic0 > 0 7 6 5 4 3 2 1 > nic1" collective all_gather --gpu h100 --nodes 4 --bytes 1GiB \
  --explain
expect 0 "crossing NICs in pairs" collective all_gather --gpu h100 --nodes 4 --bytes 1GiB --explain
expect 0 "node 1: nic1 > 1 7 6 5 4 3 2 0 > nic0" collective all_gather --gpu h100 --nodes 4 \
  --bytes 1GiB --explain
expect 0 "1 more node like these" collective all_gather --gpu h100 --nodes 4 --bytes 1GiB --explain
expect 0 "0 3 2 1 5 6 7 4 > 0" collective all_reduce --gpu v100 --nodes 1 --bytes 64MiB --explain
expect 0 "tree 0 .*root 0" collective all_reduce --gpu h100 --nodes 4 --bytes 64MiB --nccl 2.20 \
  --explain
expect 0 "busiest link .*/nic[0-7] to leaf" collective all_to_all --gpu h100 --nodes 2 \
  --bytes 64MiB --explain
for kind in all_reduce all_gather reduce_scatter broadcast reduce all_to_all send_receive; do
  for where in "h100 --nodes 3" "v100 --nodes 1" "a100 --nodes 2"; do
    # shellcheck disable=SC2086 # three words
    expect 0 "made of" collective "$kind" --gpu $where --bytes 16MiB --explain
  done
done

# The terms add up to the time, and one estimate is of what runs.
"$python" - "$program" <<'END' || failures=$((failures + 1))
import json, subprocess, sys

for kind in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"):
    for gpu, nodes in (("h100", 1), ("h100", 16), ("a100", 2), ("v100", 4)):
        for size in ("8KiB", "4MiB", "1GiB"):
            report = json.loads(subprocess.run(
                [sys.argv[1], "collective", kind, "--gpu", gpu, "--nodes", str(nodes),
                 "--bytes", size, "--explain", "--json"],
                check=True, capture_output=True, text=True).stdout)
            why = report["explanation"]
            total = sum(term["total_us"] for term in why["terms"])
            where = (kind, gpu, nodes, size)
            assert abs(total / report["time_us"] - 1) < 1e-3, (where, total, report["time_us"])
            taken = [o for o in why["nccl_options"]
                     if (o["algorithm"], o["protocol"]) == (report["algorithm"], report["protocol"])]
            assert len(taken) == 1, where
            assert taken[0]["estimate_us"] == min(o["estimate_us"] for o in why["nccl_options"])
            for channel in why["paths"]:
                assert [on["node"] for on in channel] == list(range(nodes)), where
                assert all(sorted(on["gpus"]) == list(range(8)) for on in channel), where
            assert why["busiest_link"]["busy_us"] > 0, where
END

# Without being asked nothing of this is printed.
if "$program" collective all_gather --gpu h100 --nodes 2 --bytes 1MiB | grep -q "busiest link"; then
  echo "explained without being asked"
  failures=$((failures + 1))
fi
exit $((failures > 0))
