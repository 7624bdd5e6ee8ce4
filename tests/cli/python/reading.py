"""What the program writes, read by pandas, xarray and h5py: each format the same frame."""
import json
import os
import pathlib
import subprocess
import sys
import tomllib

import h5py
import numpy
import pandas

import stepcast

source = pathlib.Path(sys.argv[1])
nodes, kinds = [2, 1], ["zero3", "zero1", "ddp"]  # zero3 is refused: a row that says so
answer = stepcast.sweep(
    {"model.name": "llama2-1b"}, gpu="h100", local_batch=1, framework="megatron-core",
    sweep={"cluster.nodes": nodes, "plan.data": kinds}, out="out", csv="out.csv")
frame = answer.to_pandas()
assert list(frame.columns[:2]) == ["cluster.nodes", "plan.data"] == frame.attrs["swept"]
assert frame["cluster.nodes"].tolist() == [2, 2, 2, 1, 1, 1]
assert frame.attrs["units"]["step_time_s"] == "s"
assert not (frame.dtypes == object).any(), frame.dtypes[frame.dtypes == object]

# Each file holds the same; HDF5 and CSV fewer columns, in the same order.
folder = pathlib.Path("out")
for found in (stepcast.read(folder / "results.json"), stepcast.read(folder / "results.jsonl"),
              stepcast.read(folder), stepcast.read("out.csv")):
    shares = {"compute_share", "exposed_share", "bubble_share", "wait_share", "host_share",
              "p_first_faster"}  # of the table alone
    columns = [name for name in found.columns if name not in shares]
    assert len(columns) > 40 and set(columns) <= set(frame.columns)
    order = {"cluster.nodes": nodes, "plan.data": kinds}
    if found.attrs["swept"]:
        assert found.attrs["swept"] == list(order)
    else:  # CSV does not say
        assert list(found.to_xarray(list(order))["plan.data"].values) == kinds
    key = list(order)
    pandas.testing.assert_frame_equal(
        pandas.DataFrame(found)[columns].sort_values(key, ignore_index=True),
        pandas.DataFrame(frame)[columns].sort_values(key, ignore_index=True), rtol=1e-12)

# A product has a dimension a key, in the order of the sweep, units with each variable.
cube = stepcast.read(folder).to_xarray()
assert cube["step_time_s"].dims == ("cluster.nodes", "plan.data")
assert cube["cluster.nodes"].values.tolist() == nodes and list(cube["plan.data"].values) == kinds
assert cube["step_time_s"].attrs["units"] == "s"
assert not [name for name in cube.variables if cube[name].dtype == object]
for row in answer["points"]:
    step = cube["step_time_s"].sel(row["sweep"]).item()
    assert step == row["step_time_s"] if "step_time_s" in row else numpy.isnan(step)
try:
    stepcast.read(folder)[1:].to_xarray()
    raise AssertionError("a product of five")
except ValueError as error:
    assert "5 rows, and 6 combinations" in str(error)

# HDF5 by h5py alone: UTF-8 texts, units, the scenario that was run.
named = stepcast.run({"title": "Größe 模型", "model.name": "llama2-1b"}, gpu="h100", nodes=1,
                     local_batch=1, data="zero2", out="one")
with h5py.File("one/results.h5") as file:
    text = file["points/model"]
    assert h5py.check_string_dtype(text.dtype).encoding == "utf-8"
    assert text.asstr()[0] == "llama2-1b" and text.dtype.kind == "S"
    assert file["points/step_time_s"].attrs["unit"] == b"s"
    assert file["points/step_time_s"][0] == named["step_time_s"]
    assert "Größe 模型" in file.attrs["scenario"].decode("utf-8")
one = stepcast.read("one")
assert len(one) == 1 and one["step_time_s"][0] == named["step_time_s"]
assert dict(one.to_xarray().sizes) == {"point": 1}

# What was asked for and what was run, by Python's own reader of TOML.
with open("out/scenario.toml", "rb") as file:
    study = tomllib.load(file)
assert study["sweep"]["plan.data"] == kinds and study["model"]["name"] == "llama2-1b"
for path, names in (("out/points/0002.toml", kinds[1]), ("one/scenario.toml", "zero2")):
    with open(path, "rb") as file:
        resolved = tomllib.load(file)
    assert resolved["plan"]["data"] == names, path
    assert resolved["cluster"]["node"]["gpu"]["name"] == "h100-sxm5-80gb", path
assert resolved["title"] == "Größe 模型"

# A model of the user's with a name that is not ASCII, in every format.
model = (source / "scenarios/models/llama2-1b.toml").read_text(encoding="utf-8")
pathlib.Path("größe.toml").write_text(model, encoding="utf-8")
stepcast.sweep({"sweep": {"model.name": ["größe.toml", "llama2-1b"]}}, gpu="h100", nodes=1,
               local_batch=1, data="zero2", out="own", csv="own.csv")
for path in ("own", "own/results.json", "own.csv"):
    assert stepcast.read(path)["model.name"].tolist() == ["größe.toml", "llama2-1b"], path

# What is not there, and what is not ours.
for wrong, kind in (("nowhere.h5", OSError), ("größe.toml", ValueError), (".", OSError)):
    try:
        stepcast.read(wrong)
        raise AssertionError(f"{wrong} was read")
    except kind:
        pass

# Whatever numpy gives is a number of the scenario.
many = stepcast.sweep(model="llama2-1b", gpu="h100", data="zero2", local_batch=numpy.int64(1),
                      sweep={"cluster.nodes": numpy.array([1, 2])})
assert [row["nodes"] for row in many["points"]] == [1, 2]
plans = stepcast.search(model="llama2-1b", gpu="h100", nodes=1, global_batch=8, top=3,
                        framework="torchtitan", fix=["plan.pipeline=1", "plan.context=1"])
stepcast.search(model="llama2-1b", gpu="h100", nodes=1, global_batch=8, top=3, out="plans",
                framework="torchtitan", fix=["plan.pipeline=1", "plan.context=1"])
assert len(stepcast.read("plans")) == len(plans["plans"])
os.remove("plans/search.json")  # rows of plans are no table
try:
    stepcast.read("plans")
    raise AssertionError("rows of plans were read")
except FileNotFoundError as error:
    assert "resume goes on" in str(error)
assert len(plans.to_pandas()) == len(plans["plans"]) and json.dumps(plans)

# CSV of the verbs whose JSON has rows: as many, with the same numbers.
sides = stepcast.compare(model="llama2-1b", nodes=2, local_batch=1, gpu="a100,h100",
                         csv="sides.csv")
table = stepcast.read("sides.csv")
assert table["name"].tolist() == ["a100", "h100"]
assert table["step_time_s"].tolist() == [side["step_time_s"] for side in sides["sides"]]
assert table["parts_s.compute_s"][1] == sides["sides"][1]["parts_s"]["compute_s"]
why = stepcast.ask("why", model="llama2-1b", gpu="h100", nodes=1, data="zero2", local_batch=1,
                   csv="edges.csv")
edges = stepcast.read("edges.csv")
assert edges["length_ps"].sum() == why["step_ps"] and len(edges) == len(why["edges"])
left = stepcast.ask("goodput", model="llama2-7b", gpu="h100", nodes=16, data="zero2", local_batch=1,
                    tokens="1T", csv="goodput.csv")
row = stepcast.read("goodput.csv")
assert len(row) == 1 and row["failures.wall.training"][0] == left["failures"]["wall"]["training"]
assert left["goodput_low"] <= row["goodput"][0] == left["goodput"] <= left["goodput_high"]
assert row["run.days"][0] == left["run"]["days"]
for words, arrays in ((["goodput"], ("rates", "ettr")), (["layers"], ("rows",)),
                      (["confidence"], ("coverage",)),
                      (["kernels", source / "calibrate/published/attention.csv"], ("rows",))):
    call = [stepcast.program(), "validate", *map(str, words)]
    said = json.loads(subprocess.run([*call, "--json", "--csv", "rows.csv"], check=True,
                                     capture_output=True).stdout)
    alone = subprocess.run([*call, "--csv", "-"], check=True, capture_output=True).stdout
    assert alone == pathlib.Path("rows.csv").read_bytes()
    assert len(stepcast.read("rows.csv")) == sum(len(said[name]) for name in arrays) > 0, words

# The page's own example, as it stands there.
page = (source / "docs/python.md").read_text(encoding="utf-8")
example = page.split("```python\n")[1].split("```")[0]
os.chdir(source)
names = {}
exec(example, names)  # noqa: S102
assert len(names["answer"]["points"]) == 18
