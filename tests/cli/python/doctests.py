"""The examples in the package's own texts."""
import doctest
import importlib
import pkgutil

import stepcast

names = ["stepcast"] + [
    f"stepcast.{found.name}" for found in pkgutil.iter_modules(stepcast.__path__)
    if not found.name.startswith("__") and found.name != "_session"]
tried = 0
for name in names:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0, f"{name}: {result.failed} examples failed"
    tried += result.attempted
assert tried >= 20, tried
