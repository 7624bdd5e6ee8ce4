"""A call from Python as words of the command line. Knows neither options nor keys: what they mean,
and which there are, says the program."""
import collections.abc
import os

from ._errors import InputError


def words_of(sources, keys):
    """Of positional arguments, dictionaries among them, and keyword arguments.

    >>> words_of(["a.toml", {"plan.tensor": 4}], {"local_batch": 2, "no_fold": True})
    ['a.toml', '--set=plan.tensor=4', '--local-batch=2', '--no-fold']
    >>> words_of([], {"plan": {"data": "zero2"}, "nccl_env": ["NCCL_ALGO=Ring"], "out": None})
    ['--set=plan.data="zero2"', '--nccl-env=NCCL_ALGO=Ring']
    """
    words = []
    for source in sources:
        words += _settings("", source) if _is_table(source) else [_file(source)]
    for name, value in keys.items():
        if _is_table(value) or "." in name:
            words += _settings(name, value)
        else:
            words += _option("--" + name.replace("_", "-"), value)
    return words


def toml(value):
    """One value as it stands behind "key = ".

    >>> toml({"a": ["x", True, 1.5], "b.c": 2})
    '{ a = ["x", true, 1.5], "b.c" = 2 }'
    """
    if hasattr(value, "tolist"):  # numpy's scalars and arrays
        value = value.tolist()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (str, os.PathLike)):
        return _quoted(os.fspath(value))
    if _is_table(value):
        inside = ", ".join(f"{_key(k)} = {toml(v)}" for k, v in value.items() if v is not None)
        return f"{{ {inside} }}"
    if isinstance(value, collections.abc.Iterable):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    raise TypeError(f"a scenario holds no {type(value).__name__}: {value!r}")


def document(table):
    """A dictionary as the text of a TOML file: a line a key.

    >>> print(document({"title": "t", "plan": {"tensor": 2}}), end="")
    title = "t"
    [plan]
    tensor = 2
    """
    nested = {}
    for path, value in table.items():  # "plan.tensor" is a key of [plan]
        first, _, rest = path.partition(".")
        if rest:
            nested.setdefault(first, {})[rest] = value
        elif _is_table(value):
            nested.setdefault(first, {}).update(value)
        else:
            nested[first] = value
    plain = {k: v for k, v in nested.items() if not _is_table(v) and v is not None}
    out = "".join(f"{_key(k)} = {toml(v)}\n" for k, v in plain.items())
    for name, inside in nested.items():
        if _is_table(inside):
            out += f"[{_key(name)}]\n"
            out += "".join(f"{_path(name, k)} = {toml(v)}\n" for k, v in inside.items()
                           if v is not None)
    return out


def _is_table(value):
    return isinstance(value, collections.abc.Mapping)


def _file(source):
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"neither a file nor a dictionary: {source!r}")
    name = os.fspath(source)
    return "./" + name if name.startswith("-") else name


def _option(name, value):
    if value is None:
        return []
    if value is True:
        return [name]
    if value is False:  # the program says that a switch takes no value
        return [name + "=false"]
    if isinstance(value, (list, tuple)):
        return [word for item in value for word in _option(name, item)]
    return [f"{name}={os.fspath(value) if isinstance(value, os.PathLike) else value}"]


def _settings(path, value):
    if value is None:
        return []
    if not _is_table(value):
        return [f"--set={path}={toml(value)}"]
    return [word for key, inside in value.items()
            for word in _settings(f"{path}.{key}" if path else key, inside)]


def _key(key):
    bare = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if bare else _quoted(key)


def _path(table, key):
    """In [sweep] and [space] the keys themselves have dots; elsewhere dots lead into tables."""
    apart = table in ("sweep", "space") or "." not in key
    return _key(key) if apart else ".".join(_key(part) for part in key.split("."))


def _quoted(text):
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise InputError(f"a text of the scenario is no Unicode: {text!r}", 3)
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(
        escapes.get(c, c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}") for c in text) + '"'
