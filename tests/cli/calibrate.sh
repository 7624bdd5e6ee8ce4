# stepcast-calibrate as a user calls it: results, messages and exit codes.
# Usage: calibrate.sh FOLDER_OF_PROGRAMS SOURCE_FOLDER
set -u
program=$1/stepcast-calibrate
source=$2
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"

expect 0 '' import "$source"/calibrate/published/*.csv --out "$work/p.h5" --title published
expect 0 'H100-SXM5-80GB' show "$work/p.h5"
"$program" export --csv "$work/p.h5" >"$work/p.csv"
expect 0 '' import "$work/p.csv" --out "$work/again.h5"
expect 0 '' merge "$work/p.h5" "$work/again.h5" --out "$work/merged.h5"
expect 0 'published' show "$work/merged.h5"
expect 0 '^  import  *Makes a table' --help
expect 0 '^usage: stepcast calibrate import FILE' import --help
expect 2 "unknown option '--quick'" import x.csv --quick  # another verb's
expect 2 "'x.toml' is one argument too many" run x.toml  # --for x.toml

old=$source/tests/sim/fixtures/calibration_v1.h5
expect 0 'gemm  *2' diff "$old" "$old"
expect 0 'only first' diff "$work/p.h5" "$old"
expect 0 '' merge "$old" "$work/p.h5" --out "$work/both.h5"
expect 2 'needs A.h5 B.h5' diff "$old"
expect 3 'unknown device' run --device tpu --out "$work/x.h5"
expect 3 'cannot be opened' run --device host --for "$work/none.toml" --out "$work/x.h5"
expect 2 'did you mean .--device' run --devise host

expect 2 'did you mean .--title' import x.csv --tilte t
expect 2 'did you mean .import' imprt x.csv
expect 2 'usage: stepcast-calibrate'  # no verb
expect 2 'needs' import x.csv
expect 2 "unknown option '--ou'" import x.csv --ou y.h5  # no guessing of prefixes
expect 3 'no such file' show "$work/none.h5"
expect 3 'not an HDF5 file' show "$work/p.csv"
head -c 20000 "$work/p.h5" >"$work/cut.h5"
expect 3 'truncated' show "$work/cut.h5"
printf 'gpu,kinds\n' >"$work/bad.csv"
expect 3 'bad.csv:1' import "$work/bad.csv" --out "$work/bad.h5"
expect 7 'cannot be written' import "$work/p.csv" --out "$work/nowhere/x.h5"
[ ! -e "$work/bad.h5" ] || { echo "bad input left a table"; failures=$((failures + 1)); }

# A node's card: a log as published, the same slower from 64 MiB on, and what it is held against.
log=$source/tests/calibrate/fixtures/all_reduce_a100_8.log
expect 0 'nothing is more than 10 % slower' card "$log"
slow=$source/tests/calibrate/fixtures/all_reduce_slow_a100_8.log
expect 8 '6 of 12 rows are more than 10 % slower' card "$slow"
expect 8 'tensor = 8, data = "zero1" .* +[1-9]' card "$slow"
expect 0 'nothing is more than 70 % slower' card "$slow" --below 70
expect 8 'held against' card "$slow" --out "$work/slow.h5"
expect 0 'held against' card "$slow" --against "$work/slow.h5"
expect 8 '"below": 6' card "$slow" --json
expect 2 'needs FILEs, or --device' card
expect 2 'not both' card "$log" --device host
expect 3 'measures one node' card --device host --quick --nodes 2 --rendezvous node1:41000

# Readable by others: h5py where it is, else HDF5's own tool.
if python_with h5py; then
  "$python" - "$work/p.h5" <<'PYTHON' || failures=$((failures + 1))
import sys, h5py
table = h5py.File(sys.argv[1])
assert table.attrs["version"] == 3
assert table["gemm/rate"].attrs["unit"] in ("FLOP/s", b"FLOP/s")
assert len(table["gemm/m"]) == len(table["gemm/rate"]) >= 2788
assert any(name.startswith(b"A100") for name in table["gemm/gpu"])
PYTHON
  # Columns that lie elsewhere: behind a link, in a device, in a file beside this one.
  "$python" - "$work" <<'PYTHON' || failures=$((failures + 1))
import os, shutil, sys, h5py
os.chdir(sys.argv[1])
for kind in "linked", "soft", "device", "virtual":
    shutil.copy("p.h5", kind + ".h5")
    with h5py.File(kind + ".h5", "r+") as table:
        rows = len(table["gemm/m"])
        del table["gemm/m"]
        if kind == "linked":
            table["gemm/m"] = h5py.ExternalLink("p.h5", "/gemm/m")
        elif kind == "soft":
            table["gemm/m"] = h5py.SoftLink("/gemm/n")
        elif kind == "device":
            table.create_dataset("gemm/m", (rows,), "i8",
                                 external=[("/dev/zero", 0, h5py.h5f.UNLIMITED)])
        else:
            layout = h5py.VirtualLayout((rows,), "i8")
            layout[:] = h5py.VirtualSource("p.h5", "gemm/m", (rows,))
            table.create_virtual_dataset("gemm/m", layout)
        if kind in ("device", "virtual"):
            table["gemm/m"].attrs["unit"] = "1"
PYTHON
  expect 3 '/gemm/m is a link' show "$work/linked.h5"
  expect 3 '/gemm/m is a link' show "$work/soft.h5"
  expect 3 'column /gemm/m lies in another file' show "$work/device.h5"
  expect 3 'column /gemm/m lies in another file' show "$work/virtual.h5"
elif command -v h5dump >/dev/null; then
  h5dump -d /gemm/rate "$work/p.h5" | grep -q 'FLOP/s' || failures=$((failures + 1))
fi
exit $((failures > 0))
