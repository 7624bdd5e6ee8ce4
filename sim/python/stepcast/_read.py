"""Results on disk as a DataFrame."""
import json
import os
import pathlib
import re

import pandas

from ._frame import Frame, arranged, frame_of
from ._rows import rows_of
from ._units import units


def read(path) -> Frame:
    """Reads what ``--out`` wrote (a folder), or one file: results.h5, the JSON of --json or --out,
    the CSV of --csv, the JSON lines of a sweep that goes on.

    Returns a pandas.DataFrame of one row a point, units in ``attrs["units"]``; ``.to_xarray()``
    where the sweep is a product. Of a folder, HDF5 is read where h5py is installed, else JSON; of
    an unfinished sweep what is there. Raises FileNotFoundError, and ValueError for what stepcast
    did not write.
    """
    path = pathlib.Path(path)
    if path.is_dir():
        return _read_folder(path)
    readers = {".h5": _read_hdf5, ".json": _read_json, ".csv": _read_csv, ".jsonl": _read_lines}
    reader = readers.get(path.suffix)
    if reader is None:
        raise ValueError(f"{path}: none of {', '.join(readers)}")
    return reader(path)


def _read_folder(folder):
    if (folder / "results.h5").is_file() and _has_h5py():
        return _read_hdf5(folder / "results.h5")
    for name in ("results.json", "search.json"):
        if (folder / name).is_file():
            return _read_json(folder / name)
    verb = _verb_of_plans(folder)
    logs = sorted(folder.glob("results*.jsonl"))
    if logs and not verb:
        return _read_lines(*logs)
    if verb == "search":
        raise FileNotFoundError(f"{folder}: no answer yet, stepcast search --resume goes on")
    raise FileNotFoundError(f"{folder}: no results of stepcast, as run --out DIR writes them")


def _verb_of_plans(folder):
    """"search" or "design", whose rows are plans that they simulated; "" of a sweep or a run."""
    try:
        return json.loads((folder / "sweep.json").read_text(encoding="utf-8")).get("verb", "")
    except (OSError, ValueError):
        return ""


def _has_h5py():
    try:
        import h5py  # noqa: F401
    except ImportError:
        return False
    return True


def _read_hdf5(path):
    import h5py
    with h5py.File(path, "r") as file:
        if "points" not in file:
            raise ValueError(f"{path}: no group /points, as stepcast writes it")
        columns, swept = {}, []
        for name, data in file["points"].items():
            is_text = h5py.check_string_dtype(data.dtype) is not None
            column = _texts(data.asstr()[()]) if is_text else pandas.Series(data[()])
            if data.attrs.get("unit", b"") in (b"flag", "flag"):
                column = _flags(column)
            if name.startswith("sweep."):
                name = name[len("sweep."):]
                swept.append(name)
            elif name in columns:
                continue  # the swept value stands for it
            columns[name] = column
        _leave_out_unread(columns, swept)
        swept = _in_order(file.attrs.get("swept", b""), swept)
    return arranged(columns, swept)


def _leave_out_unread(columns, swept):
    """Counts of a point that could not be read stand as 0 in the file."""
    unread = columns["gpus"] == 0
    for name, column in columns.items():
        if unread.any() and name not in swept and column.dtype == "int64":
            columns[name] = column.astype("float64").mask(unread)


def _in_order(written, found):
    """The keys as the sweep nests them, where the file says so; a file from before does not."""
    order = written.decode("utf-8").split("\n")
    return sorted(found, key=lambda key: order.index(key) if key in order else len(order))


def _flags(values):
    """-1 stands for a point that could not be read."""
    unread = values < 0
    flags = values > 0
    return flags.astype("boolean").mask(unread) if unread.any() else flags


def _texts(values):
    column = pandas.Series(values, dtype="string")
    return column.mask(column == "")


def _read_json(path):
    answer = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(answer, dict):
        raise ValueError(f"{path}: no answer of stepcast")
    return frame_of(rows_of(answer))


def _read_lines(*paths):
    """A point that two shards hold counts once; the last line of a running one may be torn."""
    rows = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in file:
                try:
                    entry = json.loads(line)
                except json.JSONDecodeError:
                    continue
                if isinstance(entry, dict) and "result" in entry:
                    rows.setdefault(entry.get("id", (path, len(rows))), entry["result"])
    if not rows:
        raise ValueError(f"{os.fspath(paths[0])}: no finished point")
    return frame_of(list(rows.values()))


def _without_apostrophe(text):
    """As it was before csv_cell (sim/files/csv.hpp) kept a spreadsheet from computing it."""
    return text[1:] if isinstance(text, str) and re.match(r"'+[=+\-@\t].", text) else text


def _read_csv(path):
    """CSV has no types: a version is a text, as on the command line, and what has a unit is no
    count."""
    named = pandas.read_csv(path, nrows=0).columns
    versions = {name: "string" for name in named if name.endswith(("version", ".nccl"))}
    table = pandas.read_csv(path, dtype=versions, keep_default_na=False, na_values=[""],
                            float_precision="round_trip")  # as written, to the last digit
    unit_of = units()
    columns = {}
    for name, column in table.items():
        if column.dtype == object and all(isinstance(one, bool) for one in column.dropna()):
            column = column.astype("boolean")
        elif column.dtype == object:
            column = column.map(_without_apostrophe).astype("string")
        elif unit_of.get(name):
            column = column.astype("float64")
        columns[name] = column
    return arranged(columns, [])
