"""Forecasts one step of distributed LLM training on a GPU cluster, from Python.

Keyword arguments are the options of the program (``local_batch=2`` is ``--local-batch 2``), or,
where they are dictionaries, tables of a scenario: the same keys as in a TOML file. What the program
does not know it refuses, in its own words.

>>> import stepcast
>>> report = stepcast.run(model="llama2-7b", gpu="h100", nodes=2, data="zero2", local_batch=1)
>>> report["gpus"], report["plan"]["data"]
(16, 'zero2')
>>> report["step_time_low_s"] < report["step_time_s"] < report["step_time_high_s"]
True
>>> stepcast.run(model="llama2-7b", gpu="h100", nodes=2, plan={"tensr": 2})
Traceback (most recent call last):
stepcast.InputError: --set plan.tensr: unknown key 'tensr' in [plan], did you mean 'tensor'?
"""
from ._call import forget
from ._errors import Error, InputError, NoFeasiblePlan, OutputError
from ._program import engine, program, version
from ._report import Report
from ._verbs import ask, collective, compare, diagnose, run, search, sweep

__all__ = [
    "Error", "Frame", "InputError", "NoFeasiblePlan", "OutputError", "Report", "ask", "collective",
    "compare", "diagnose", "engine", "forget", "program", "read", "run", "search", "sweep",
    "version",
]
for _public in (Error, InputError, NoFeasiblePlan, OutputError):
    _public.__module__ = __name__  # as they are called: stepcast.InputError


def __getattr__(name):
    """read and Frame need pandas, the others nothing but Python."""
    if name == "read":
        from ._read import read
        return read
    if name == "Frame":
        from ._frame import Frame
        return Frame
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
