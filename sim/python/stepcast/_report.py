"""What the program answered, as a dictionary that shows itself."""
import html
import os
import sys
import tempfile

from ._rows import leaves_of, rows_of
from ._units import units


class Report(dict):
    """The object that the verb prints with --json. `verb`: "run"."""

    def __init__(self, answer, verb, sources=(), keys=None):
        super().__init__(answer)
        self.verb = verb
        self._sources, self._keys = sources, keys or {}

    def to_pandas(self):
        """One row a point (a plan of search, a side of compare), as a Frame: see read()."""
        from ._frame import frame_of
        return frame_of(rows_of(self))

    def to_xarray(self, dims=None):
        """One dimension a swept key; ValueError where the points are no product of them."""
        return self.to_pandas().to_xarray(dims)

    def text(self):
        """What the program prints for the same call."""
        from ._verbs import printed
        return printed(self.verb, self._sources, self._keys)

    def picture(self):
        """The program's picture as SVG: a step's memory, a comparison's waterfall, a search's
        plans. None where it draws none."""
        from ._verbs import ask
        option, name = _pictures.get(self.verb, (None, None))
        if option is None or "points" in self:
            return None
        # Files that the call itself wrote stay as they are.
        keys = {key: value for key, value in self._keys.items() if key not in _writing}
        with tempfile.TemporaryDirectory(prefix="stepcast-") as folder:
            target = folder if option == "out" else os.path.join(folder, name)
            ask(self.verb, *self._sources, **{**keys, option: target})
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                return file.read()

    def show(self):
        """In a notebook the table and the picture, elsewhere what the program prints."""
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        if shell is None or not hasattr(shell, "kernel"):
            print(self.text(), end="")
            return
        from IPython.display import HTML, SVG, display
        display(HTML(self._repr_html_()))
        picture = self.picture()
        if picture is not None:
            display(SVG(picture))

    def _repr_html_(self):
        all_rows = rows_of(self)
        rows = [leaves_of(row) for row in all_rows[:_most_rows]]
        left_out = len(all_rows) - len(rows)
        return (_one(rows[0]) if len(rows) == 1 else _many(rows)) + (
            f"<p>and {left_out} more rows: to_pandas()</p>" if left_out else "")


_most_rows = 100  # of a page
_pictures = {"run": ("memory_timeline", "memory.svg"), "compare": ("svg", "waterfall.svg"),
             "search": ("out", "plans.svg")}
_writing = {"out", "csv", "timeline", "memory_timeline", "svg"}


def _one(row):
    unit_of = units()
    return _table(["", "value", "unit"],
                  [[key, value, unit_of.get(key, "")] for key, value in row.items()])


def _many(rows):
    """A column a member that any row has, its unit below its name."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    unit_of = units()
    return _table(keys, [[row.get(key, "") for key in keys] for row in rows],
                  [unit_of.get(key, "") for key in keys])


def _table(heads, rows, below=None):
    def line(cells, tag):
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    head = line(heads, "th") + (line(below, "th") if below else "")
    body = "".join(line([_text(cell) for cell in row], "td") for row in rows)
    return (f'<div style="overflow-x:auto"><table><thead>{head}</thead>'
            f"<tbody>{body}</tbody></table></div>")


def _text(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)
