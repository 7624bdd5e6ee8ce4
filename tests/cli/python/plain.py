"""What the package does with nothing but Python."""
import pickle
import sys

import stepcast

assert "pandas" not in sys.modules and "numpy" not in sys.modules
step = dict(model="llama2-7b", gpu="h100", nodes=1, data="zero2", local_batch=1)


def mistake(kind, call, *sources, **keys):
    try:
        call(*sources, **keys)
    except kind as error:
        assert isinstance(error, stepcast.Error)
        return error
    raise AssertionError(f"{call.__name__} {keys} raised no {kind.__name__}")


# The same keys: an option, a table, a dictionary with tables, one with paths.
by_option = stepcast.run(**step)
tables = {"model": {"name": "llama2-7b"}, "plan": {"data": "zero2"}, "batch": {"local": 1}}
assert stepcast.run(tables, gpu="h100", nodes=1) == by_option
paths = {"model.name": "llama2-7b", "plan.data": "zero2", "batch.local": 1}
assert stepcast.run(paths, gpu="h100", **{"cluster.nodes": 1}) == by_option
# A version is a word, as a text and as TOML writes it.
old = stepcast.run(**step, software={"framework": "pytorch-fsdp2", "version": "2.3"})
assert old["plan"]["framework_version"] == "2.3"

# The program's own words.
error = mistake(stepcast.InputError, stepcast.run, modle="llama2-7b")
assert str(error) == "unknown option '--modle', did you mean '--model'?" and error.code == 2
error = mistake(stepcast.InputError, stepcast.run, **step, plan={"tensr": 2})
assert error.where == "--set plan.tensr" and "did you mean 'tensor'" in error.hint
assert isinstance(error, ValueError) and error.code == 3 and error.result is None
assert str(pickle.loads(pickle.dumps(error))) == str(error)  # of a pool's workers
assert mistake(stepcast.InputError, stepcast.run, "nowhere.toml").where == "nowhere.toml"
mistake(stepcast.InputError, stepcast.sweep, **step)
mistake(stepcast.InputError, stepcast.run, **step, sequence_parallel=False)
large = {**step, "model": "llama2-70b", "data": "ddp"}
error = mistake(stepcast.NoFeasiblePlan, stepcast.run, **large)
assert error.code == 4 and error.result["refused"] == error.problem and "GiB" in error.problem
assert stepcast.run(**large, ignore_memory=True)["memory_gib_per_gpu"] > 1000
error = mistake(stepcast.OutputError, stepcast.run, **step, csv="no/such/folder.csv")
assert error.code == 7 and error.result["gpus"] == 8
for wrong in (lambda: stepcast.run(5), lambda: stepcast.run(plan={"tensor": object()})):
    try:
        wrong()
        raise AssertionError("no TypeError")
    except TypeError:
        pass

# What no program takes as its words is a mistake like any other.
long = {**step, "model": None, "sweep": {"batch.local": ["x" * 100] * 2000}}
error = mistake(stepcast.InputError, stepcast.sweep, **long)
assert error.code == 2 and "TOML file" in error.hint, error
for text in ("\ud800", "a\udc80b"):
    error = mistake(stepcast.InputError, stepcast.run, **step, title=text)
    assert error.code in (2, 3), error
    mistake(stepcast.InputError, stepcast.run, {"title": text}, **step)
    mistake(stepcast.InputError, stepcast.compare, {"title": text}, {"title": "b"})
error = mistake(stepcast.InputError, stepcast.run,
                {"model": {f"key{i}": i for i in range(200_000)}}, **step)
assert "200000 settings" in str(error) or "TOML file" in error.hint, error

# A sweep's point without an answer is a row.
several = {"model.name": ["llama2-7b", "llama2-70b"], "plan.data": ["zero2", "zero3"]}
points = stepcast.sweep(**{**step, "model": None}, sweep=several)["points"]
assert ["refused" in point for point in points] == [False, False, True, True]

# A result and a scenario side by side; its page shows what was asked for and nothing else.
both = stepcast.compare(by_option, {**tables, "title": "<b>", "cluster.node": "dgx-h100"})
assert [side["name"] for side in both["sides"]] == ["A.json", "B.toml"]
assert both["sides"][0]["step_time_s"] == both["sides"][1]["step_time_s"]
page = stepcast.Report({"model": "<script>alert(1)</script>", "step_time_s": 0.5}, "run")
assert "<script" not in page._repr_html_() and "&lt;script" in page._repr_html_()
assert "<td>step_time_s</td><td>0.5</td><td>s</td>" in page._repr_html_()
many = stepcast.Report({"points": [{"mfu": 0.1}] * 150}, "sweep")._repr_html_()
assert many.count("<tr>") == 102 and "50 more rows" in many  # heads, units, 100 points
assert by_option.picture().startswith("<svg") and both.picture().startswith("<svg")
assert "step time" in by_option.text()
