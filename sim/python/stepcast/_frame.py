"""Rows as a pandas.DataFrame, and as an xarray.Dataset where they are a product."""
import pandas

from ._rows import leaves_of
from ._units import units


class Frame(pandas.DataFrame):
    """A pandas.DataFrame of one row a point: swept keys first, then metrics in the program's order.
    Numbers are numbers and texts pandas' own "string": no column is of objects.

    `attrs["units"]`: unit by column; `attrs["swept"]`: the swept keys."""

    @property
    def _constructor(self):
        return Frame

    def to_xarray(self, dims=None):
        """A dimension a swept key (or column of `dims`), units in the variables' attrs. ValueError
        where the rows are no product of these. Without any: one dimension, "point".

        >>> frame = frame_of([{"sweep": {"a": a, "b": b}, "mfu": a / b} for a in (1, 2)
        ...                   for b in (8, 4)])
        >>> dict(frame.to_xarray().sizes)
        {'a': 2, 'b': 2}
        >>> frame.to_xarray()["b"].values.tolist()
        [8, 4]
        >>> frame[1:].to_xarray()
        Traceback (most recent call last):
        ValueError: no product of a, b: 3 rows, and 4 combinations of their values
        """
        dims = list(self.attrs.get("swept", []) if dims is None else dims)
        plain = pandas.DataFrame(self).copy()  # it shares what it is made of
        texts = [name for name in plain if plain[name].dtype == "string"]
        plain[texts] = plain[texts].fillna("")
        for name in plain:
            if plain[name].dtype == "boolean":  # of points without one: 0, 1 and NaN
                plain[name] = plain[name].astype("float64")
        if dims:
            values = {dim: plain[dim].unique() for dim in dims}
            combinations = 1
            for of_dim in values.values():
                combinations *= len(of_dim)
            if combinations != len(plain) or plain.duplicated(dims).any():
                raise ValueError(f"no product of {', '.join(dims)}: {len(plain)} rows, and "
                                 f"{combinations} combinations of their values")
            out = plain.set_index(dims).to_xarray().reindex(values)  # in the order of the sweep
        else:
            out = plain.rename_axis("point").to_xarray()
        for name in texts:  # not of objects
            out[name] = out[name].astype(str)
        for name, unit in self.attrs.get("units", {}).items():
            if name in out.variables and unit:
                out[name].attrs["units"] = unit
        return out


def frame_of(rows):
    """Of objects as the program prints them for a point each."""
    swept = list(dict.fromkeys(key for row in rows for key in row.get("sweep", {})))
    flat = [leaves_of(row) for row in rows]
    names = dict.fromkeys(name for row in flat for name in row)
    columns = {name: _column([row.get(name) for row in flat]) for name in names}
    return arranged(columns, swept)


def arranged(columns, swept):
    """Columns in order, those without any value left out."""
    unit_of = units()
    known = {name: place for place, name in enumerate([*swept, *unit_of])}
    names = sorted((name for name, values in columns.items() if values.notna().any()),
                   key=lambda name: known.get(name, len(known)))
    out = Frame({name: columns[name] for name in names})
    out.attrs["swept"] = [key for key in swept if key in columns]
    out.attrs["units"] = {name: unit_of[name] for name in names if name in unit_of}
    return out


def _column(values):
    given = [value for value in values if value is not None]
    whole = len(given) == len(values)
    if all(isinstance(value, bool) for value in given):
        return pandas.Series(values, dtype=bool if whole else "boolean")
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool)
                  for value in given)
    if not numbers:
        return pandas.Series([None if value is None else _word(value) for value in values],
                             dtype="string")
    integers = whole and all(isinstance(value, int) and abs(value) < 2**63 for value in given)
    return pandas.Series(values, dtype="int64" if integers else "float64")


def _word(value):
    """As TOML writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
