"""The units of what is reported, from the program's own table."""
import csv
import functools
import subprocess

from ._program import program


@functools.lru_cache(maxsize=None)
def units():
    """Unit by metric: a metric without one has ""; in the program's order.

    >>> units()["step_time_s"], units()["memory_gib_per_gpu"]
    ('s', 'GiB')
    """
    said = subprocess.run([program(), "show", "metrics", "--csv", "-"], capture_output=True,
                          text=True, encoding="utf-8", check=True)
    return {row["metric"]: row["unit"] for row in csv.DictReader(said.stdout.splitlines())}
