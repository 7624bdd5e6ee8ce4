"""Builds what the written train_fsdp2.py builds on every stage, without torch, and holds it against
the plan.
    check_train_fsdp2.py FOLDER PARAMETERS"""
import importlib.util
import json
import os
import sys

import recorded_torch as recorded

recorded.install()
folder, parameters = sys.argv[1], int(sys.argv[2])
where = importlib.util.spec_from_file_location("script", os.path.join(folder, "train_fsdp2.py"))
script = importlib.util.module_from_spec(where)
where.loader.exec_module(script)

with open(os.path.join(folder, "fsdp.json"), encoding="ascii") as file:
    plan = json.load(file)
sizes = plan["init_device_mesh"]
mesh, shards = script.mesh_of(plan, "cuda")
layers = plan["model"]["layers"]
built = {}
for stage in range(sizes["pp"]):
    for number in script.parts_of(plan, stage):
        assert number not in built, "a part on two stages"
        built[number] = script.made(plan, mesh, shards, number, "cuda")

per_part = plan["pipelining"]["layers_per_part"] if sizes["pp"] > 1 else [layers]
assert sorted(built) == list(range(len(per_part)))
assert [len(built[part].layers) for part in sorted(built)] == per_part
counted = sum(tensor.numel() for part in built.values() for tensor in part.parameters())
assert counted == parameters, f"{counted} parameters, {parameters} in the forecast"

# Every layer is a unit of its own, and each part around them.
assert len(recorded.sharded) == layers + len(built)
said = plan.get("fully_shard", {})
assert {call["reshard"] for call in recorded.sharded} == {said.get("reshard_after_forward", False)}
shard = "dp_shard_cp" if sizes["cp"] > 1 else "dp_shard"
copies = ("dp_replicate", shard) if sizes["dp_replicate"] > 1 else (shard,)
assert {call["mesh"] for call in recorded.sharded} == {copies}
assert recorded.mesh_sizes[shard] == sizes["dp_shard"] * sizes["cp"]
if said.get("set_modules_to_forward_prefetch", 1) > 1:
    assert max(recorded.ahead) == said["set_modules_to_forward_prefetch"]

again = plan["checkpoint_wrapper"]
expected = sum(-(-part // again["every"]) for part in per_part)
assert len(recorded.wrapped) == (0 if again["mode"] == "none" else expected)
if again["mode"] == "ops":
    assert all(call["context_fn"] is script.kept_operators for call in recorded.wrapped)

if sizes["tp"] > 1:
    assert len(recorded.cut) == layers + len(built)
    gate = {"mlp.gate"} if plan["model"]["activation"] == "swiglu" else set()
    norms = {"attention_norm", "mlp_norm"} if plan["parallelize_module"]["sequence_parallel"] else set()
    assert recorded.cut[0] == gate | norms | {
        "attention", "attention.q", "attention.k", "attention.v", "attention.out", "mlp", "mlp.up",
        "mlp.down"}
else:
    assert recorded.cut == []
assert all(getattr(layer, "compiled", False) == plan["training"]["compile"]
           for part in built.values() for layer in part.layers)
