#!/bin/sh
# The studies of experts, low precision and racks: what must hold whatever the figures are.
#   modern.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
programs=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"

for study in deepseek_v3_h100 mixtral_plans low_precision nvlink_domains \
  expert_overlap; do
  "$programs/stepcast" sweep "$source/scenarios/modern/$study.toml" --json --quiet \
    >"$work/$study.json" 2>/dev/null
done
for graphs in none layers iteration; do
  "$programs/stepcast" run "$source/scenarios/modern/mixtral.toml" --json \
    --set "software.cuda_graphs=$graphs" >"$work/graphs_$graphs.json" 2>/dev/null
done
"$python" - "$work" <<'PYTHON'
import json, sys

def points(study):
    with open(f"{sys.argv[1]}/{study}.json", encoding="utf-8") as file:
        return json.load(file)["points"]

def steps(study, *keys):
    return {tuple(p["sweep"][k] for k in keys): p["step_time_s"]
            for p in points(study) if "step_time_s" in p}

# Experts of 64 ranks: a wider NVLink domain is never slower.
domains = steps("nvlink_domains", "cluster.gpus_per_domain")
times = [domains[(n,)] for n in (8, 16, 32, 64)]
assert times == sorted(times, reverse=True), times

# Eight bits are faster, by less than their peak; a GPU without them refuses them by name.
precision = steps("low_precision", "model.name", "cluster.node", "precision.recipe")
for (model, node, recipe), time in precision.items():
    if recipe != "none" and (model, node, "none") in precision:  # 16 bits may not fit
        gain = precision[(model, node, "none")] / time
        assert 1 < gain < 2, (model, node, recipe, gain)
refused = [p["refused"] for p in points("low_precision") if "refused" in p]
assert any("cannot run recipe" in why for why in refused), refused

# The same work for each GPU: more of them are not faster, and lose little with 16,384.
scaling = steps("deepseek_v3_h100", "cluster.nodes")
assert scaling[(2048,)] >= scaling[(64,)] and scaling[(2048,)] < 1.1 * scaling[(64,)], scaling

# What a graph replays costs the host less, and the step with it.
def graphs(kind):
    with open(f"{sys.argv[1]}/graphs_{kind}.json", encoding="utf-8") as file:
        return json.load(file)["step_time_s"]

assert graphs("iteration") < graphs("layers") < graphs("none"), [graphs("none"), graphs("layers")]

# Measured steps of the exchange apart and beside compute, seconds (the study names the source).
overlap = steps("expert_overlap", "plan.dispatcher", "plan.expert_overlap")
measured = {("nvlink_domain", False): 24.71, ("nvlink_domain", True): 20.99,
            ("all_to_all", False): 41.25, ("all_to_all", True): 31.31}
for key, seconds in measured.items():
    assert abs(overlap[key] / seconds - 1) < 0.2, (key, overlap[key], seconds)
gain = {kind: overlap[(kind, False)] / overlap[(kind, True)]
        for kind in ("nvlink_domain", "all_to_all")}
for kind, of_measured in (("nvlink_domain", 24.71 / 20.99), ("all_to_all", 41.25 / 31.31)):
    assert abs(gain[kind] / of_measured - 1) < 0.05, gain

# What experts need is shared by the ranks that share them.
memory = {(p["sweep"]["plan.expert"], p["sweep"]["plan.tensor"], p["sweep"]["plan.pipeline"]):
          p["memory_gib_per_gpu"] for p in points("mixtral_plans") if "step_time_s" in p}
assert memory[(8, 4, 8)] < memory[(4, 4, 8)], memory
PYTHON
