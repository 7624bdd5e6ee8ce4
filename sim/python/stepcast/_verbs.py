"""The verbs: each takes scenario files, dictionaries and keyword arguments (see the package)."""
import contextlib
import json
import os
import tempfile

from ._call import answer, text_of
from ._report import Report
from ._words import document, words_of


def run(*scenario, **keys):
    """Forecasts one training step; of a scenario with [sweep] every point.

    Returns a Report: what ``stepcast run --json`` prints, units in the keys' names. Raises
    InputError for what means nothing, NoFeasiblePlan where the plan does not fit in memory.

    >>> step = run({"model.name": "llama2-7b"}, gpu="h100", gpus=8, plan={"data": "zero3"},
    ...            batch={"local": 1})
    >>> step["model"], step["nodes"]
    ('llama2-7b', 1)
    """
    return ask("run", *scenario, **keys)


def sweep(*scenario, **keys):
    """Runs every point of a sweep: a file with [sweep], or ``sweep={"cluster.nodes": [1, 2]}``.

    The Report holds ``["points"]``; a point without an answer says why, as ``refused`` or
    ``failed``.

    >>> many = sweep(model="llama2-7b", gpu="h100", data="zero3", local_batch=1,
    ...              sweep={"cluster.nodes": [1, 2]})
    >>> [point["gpus"] for point in many["points"]]
    [8, 16]
    """
    return ask("sweep", *scenario, **keys)


def search(*scenario, **keys):
    """Finds the fastest plans, and proves that no other is faster: ``["plans"]``, best first.

    >>> best = search(model="llama2-7b", gpu="h100", nodes=1, global_batch=8,
    ...               framework="torchtitan", fix=["plan.pipeline=1", "plan.context=1"])
    >>> best["proven"]
    True
    """
    return ask("search", *scenario, **keys)


def compare(*sides, **keys):
    """Sets scenarios (files, dictionaries) and results (Reports of run, files) side by side; or one
    scenario with ``what_if=["gpu.tensor_peak x2"]``, or on several machines (``gpu="a100,h100"``).

    Files that a dictionary names stand by their absolute paths.

    >>> both = compare(model="llama2-7b", nodes=2, local_batch=1, gpu="a100,h100")
    >>> [side["name"] for side in both["sides"]]
    ['a100', 'h100']
    """
    return ask("compare", *sides, **keys)


def collective(kind, *scenario, **keys):
    """Times one collective over all GPUs.

    >>> collective("all_reduce", gpu="h100", nodes=4, bytes="1 GiB")["gpus"]
    32
    """
    return ask("collective", kind, *scenario, **keys)


def diagnose(*files, **keys):
    """Why a run of your own is slower than expected: logs, traces, configurations, a pasted text,
    in any mix; ``["verdict"]``, ``["causes"]`` that add up to the gap. Of several logs, which is
    slower and by what. A slow run is an answer, no exception: ``["slower"]``. The scenario that
    was read is kept where ``out`` says, by default beside the first file.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = os.path.join(folder, "train.log")
    ...     with open(log, "w") as file:
    ...         for n in range(1, 10):
    ...             print(f"iteration {n}/ 9 | elapsed time per iteration (ms): 4000.0", file=file)
    ...     slow = diagnose(log, model={"name": "llama2-7b", "sequence": 4096}, batch={"local": 1},
    ...                     cluster={"node": "dgx-h100", "nodes": 1}, plan={"data": "zero2"},
    ...                     no_alternatives=True)
    >>> slow["slower"], slow["causes"][-1]["cause"]
    (True, 'not_explained')
    """
    return ask("diagnose", *files, **keys)


def ask(verb, *sources, **keys):
    """Any verb of the program that prints JSON: ``ask("why", "scenario.toml")``."""
    with _words(verb, sources, keys) as (words, folder):
        return Report(answer(verb, words, folder), verb, sources, keys)


def printed(verb, sources, keys):
    """What the same call prints for people."""
    with _words(verb, sources, keys) as (words, folder):
        return text_of(verb, words, folder)


@contextlib.contextmanager
def _words(verb, sources, keys):
    """The call's words, and the folder of the files that it needed, if any."""
    if verb != "compare" or not any(isinstance(side, dict) for side in sources):
        yield words_of(sources, keys), None
        return
    with tempfile.TemporaryDirectory(prefix="stepcast-") as folder:
        files = [_as_file(side, i, folder) for i, side in enumerate(sources)]
        yield words_of(files, keys), folder


def _as_file(side, index, folder):
    """A dictionary or a Report as a file that the program reads, named like the side: A, B, ..."""
    if not isinstance(side, dict):
        return side
    is_result = isinstance(side, Report)
    name = os.path.join(folder, chr(ord("A") + index % 26) + (".json" if is_result else ".toml"))
    with open(name, "w", encoding="utf-8") as file:
        file.write(json.dumps(side) if is_result else document(side))
    return name
