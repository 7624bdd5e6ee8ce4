# The whole circle for real in small: measure this machine's cores, simulate a step from that table
# alone, read the table as others would. Completeness, not time. 77: skipped, with the reason.
# Usage: host_circle.sh FOLDER_OF_PROGRAMS SOURCE_FOLDER
set -u
programs=$1
program=$programs/stepcast-calibrate
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"

skip() {
  echo "skipped: $1"
  exit 77
}
"$program" run --device host --for /nowhere.toml --out "$work/t.h5" 2>&1 | grep -q OpenBLAS &&
  skip "no OpenBLAS"
[ -x "$programs/stepcast-host-ranks" ] || skip "built without MPI"
command -v mpirun >/dev/null 2>&1 || skip "no mpirun on PATH"

cat >"$work/tiny.toml" <<'TOML'
[model]
name = "tiny"
layers = 2
hidden = 64
heads = 2
kv_heads = 1
head_dim = 32
ffn_hidden = 96
vocab = 128
norm = "rmsnorm"
activation = "swiglu"
rope = true
sequence = 32
[cluster]
node = "host"
[batch]
local = 1
[plan]
data = "zero2"
[precision]
compute = "fp32"
gradient_reduce = "fp32"
[software]
framework = "stepcast-trainer"
[calibration]
tables = ["host.h5"]
TOML

# Without a table the simulator says how to make one.
sed 's/"host.h5"/"published"/' "$work/tiny.toml" >"$work/unmeasured.toml"
program=$programs/stepcast
expect 3 'stepcast-calibrate run --device host' run "$work/unmeasured.toml"

program=$programs/stepcast-calibrate
expect 0 'host-core: [0-9]* measured' run --device host --for "$work/tiny.toml" --quick \
  --out "$work/host.h5"
expect 0 ' 0 measured' run --device host --for "$work/tiny.toml" --quick --resume \
  --out "$work/host.h5"

# Every kernel and collective of the step rests on this machine: no model, no datasheet.
program=$programs/stepcast
expect 0 'step time' run "$work/tiny.toml"
"$program" run "$work/tiny.toml" >"$work/report.txt"
for line in 'kernel times' 'collective times'; do
  grep "^$line" "$work/report.txt" | grep -q measured ||
    { echo "the $line are not measured"; failures=$((failures + 1)); }
  ! grep "^$line" "$work/report.txt" | grep -qE 'extrapolated|model|datasheet' ||
    { echo "the $line rest on something else"; failures=$((failures + 1)); }
done

python_with h5py || skip "no h5py: the table was measured and simulated"
"$python" - "$work/host.h5" <<'PYTHON' || failures=$((failures + 1))
import sys, h5py
table = h5py.File(sys.argv[1])
words = lambda column: {w.decode() for w in column[:]}
gemm, attention, other = table["gemm"], table["attention"], table["elementwise"]
assert words(gemm["gpu"]) == {"host-core"} and words(gemm["dtype"]) == {"fp32"}
assert words(gemm["layout"]) == {"NN", "NT", "TN"}, words(gemm["layout"])
assert (gemm["rate"][:] > 0).all() and gemm["rate"].attrs["unit"] in ("FLOP/s", b"FLOP/s")
assert words(attention["pass"]) == {"forward", "backward"}
missing = {"rmsnorm", "rope", "silu_mul", "residual_add", "embedding", "cross_entropy", "adamw",
           "grad_norm"} - words(other["kind"])
assert not missing, missing
assert (other["duration"][:] > 0).all() and (other["samples"][:] > 0).all()
assert {"allgather", "reducescatter"} <= words(table["collectives/collective"])
assert set(table["collectives/ranks"][:]) == {2}
PYTHON

# A rank that is gone is told, nothing hangs, and the rest is measured.
mkdir "$work/bin"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/mpirun"
chmod +x "$work/bin/mpirun"
program=$programs/stepcast-calibrate
saved_path=$PATH
PATH=$work/bin:$PATH
expect 0 'ranks under mpirun ended' run --device host --for "$work/tiny.toml" --quick \
  --out "$work/no_mpi.h5"
PATH=$saved_path
exit $((failures > 0))
