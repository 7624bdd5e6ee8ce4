"""Where the program and the module are that answer."""
import functools
import os
import pathlib
import shutil
import subprocess

_here = pathlib.Path(__file__).parent


@functools.lru_cache(maxsize=None)
def program():
    """The program's path: STEPCAST_PROGRAM, else that of the build or the installation which this
    package is part of, else the first in PATH. FileNotFoundError where there is none."""
    chosen = os.environ.get("STEPCAST_PROGRAM")
    if chosen:
        return chosen
    # PREFIX/lib/python3/dist-packages/stepcast, BUILD/python/stepcast
    parents = _here.absolute().parents
    for place in (parents[min(3, len(parents) - 1)] / "bin", parents[1]):
        if os.access(place / "stepcast", os.X_OK) and (place / "stepcast").is_file():
            return str(place / "stepcast")
    found = shutil.which("stepcast")
    if found is None:
        raise FileNotFoundError("the program stepcast is not in PATH: set STEPCAST_PROGRAM to it")
    return found


@functools.lru_cache(maxsize=None)
def module():
    """The compiled module; None where it is not built, is another Python's, or is not wanted
    (STEPCAST_IN_PROCESS=0)."""
    if os.environ.get("STEPCAST_IN_PROCESS") == "0":
        return None
    try:
        from . import _session
    except ImportError:
        return None
    return _session


def engine():
    """What answers: "module", within this process, or "program"."""
    return "program" if module() is None else "module"


@functools.lru_cache(maxsize=None)
def version():
    """The program's version.

    >>> version().split(".")[0].isdigit()
    True
    """
    said = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True)
    return said.stdout.split()[1]
