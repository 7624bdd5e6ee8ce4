"""What a verb printed, as rows of numbers and texts."""
import json


def rows_of(answer):
    """The rows of what a verb printed: points, plans, sides, causes, compared logs, or itself."""
    for several in ("points", "plans", "sides", "causes", "runs"):
        if isinstance(answer.get(several), list):
            return answer[several]
    return [answer]


def leaves_of(row, prefix=""):
    """Numbers and texts by path, the layers of stages as a text; other lists are left out. What a
    point sets stands first, by its key.

    >>> leaves_of({"mfu": 0.5, "plan": {"tensor": 2}, "sweep": {"plan.tensor": 2}})
    {'plan.tensor': 2, 'mfu': 0.5}
    """
    out = {} if prefix else {key: value for key, value in row.get("sweep", {}).items()
                             if not isinstance(value, (list, dict))}
    for key, value in row.items():
        path = prefix + key
        if isinstance(value, dict) and path != "sweep":
            for inside, leaf in leaves_of(value, path + ".").items():
                out.setdefault(inside, leaf)
        elif path == "plan.stage_layers":
            out.setdefault(path, json.dumps(value, separators=(",", ":")))
        elif not isinstance(value, (list, dict)) and value is not None:
            out.setdefault(path, value)
    return out
