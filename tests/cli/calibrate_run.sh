# stepcast-calibrate run on this machine's cores: what it writes, what an interrupt keeps, what
# --resume leaves out, and that a full disk loses nothing. Completeness, not times.
# Usage: calibrate_run.sh FOLDER_OF_PROGRAMS SOURCE_FOLDER
set -u
program=$1/stepcast-calibrate
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/patience.sh
. "$2/tests/cli/shared/patience.sh"
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"

cat >"$work/small.toml" <<'SCENARIO'
[model]
name = "tiny"
sequence = 64
layers = 2
hidden = 64
heads = 2
kv_heads = 2
head_dim = 32
ffn_hidden = 128
vocab = 256

[cluster]
node = "dgx-h100"
gpus = 2

[precision]
compute = "fp32"

[plan]
data = "zero2"

[batch]
local = 1
SCENARIO
table=$work/host.h5

output=$("$program" run --device host --quick --for "$work/small.toml" --out "$table" 2>&1)
code=$?
if printf '%s' "$output" | grep -q 'without OpenBLAS'; then
  echo "no OpenBLAS: the host cannot be measured"
  exit 77
fi
if [ $code -ne 0 ]; then
  echo "run: exit $code"
  printf '%s\n' "$output" | tail -5
  exit 1
fi
expect 0 ' 0 measured, [1-9][0-9]* known before' run --device host --quick --resume \
  --for "$work/small.toml" --out "$table"
expect 0 'gemm .* 1[0-9]' show "$table"
expect 3 'measures one node' run --device host --quick --nodes 2 --rendezvous node1:41000
expect 0 'stepcast-calibrate run' show "$table"
expect 0 'gemm' diff "$table" "$table"
expect 0 '' export --csv "$table"
expect 0 'held against published: nothing is known' card "$table"
expect 0 '^product fp32 NT .* 1\.00 ' card "$table" --against "$table"

# An interrupt keeps what was measured; resume measures the rest.
"$program" run --device host --out "$work/cut.h5" >"$work/out" 2>&1 &
pid=$!
wait_until says_in "$work/out" tasks || echo "no task is told"
wait_until [ -s "$work/cut.h5" ] || echo "no table while it grows"
kill -TERM $pid
wait $pid
code=$?
if [ $code -ne 143 ] || ! grep -q 'interrupted' "$work/out"; then
  echo "interrupted run: exit $code"
  tail -3 "$work/out"
  failures=$((failures + 1))
fi
expect 0 'launches' show "$work/cut.h5"

# Killed: the table is written as it grows, a second late. All would take minutes.
"$program" run --device host --out "$work/killed.h5" >/dev/null 2>&1 &
pid=$!
wait_until [ -s "$work/killed.h5" ] || echo "no table while it grows"
kill -KILL $pid
wait $pid
code=$?
if [ $code -ne 137 ]; then
  echo "killed run: exit $code"
  failures=$((failures + 1))
fi
expect 0 'launches' show "$work/killed.h5"

# A disk that takes 1 KiB: the table that was there stays whole.
before=$(cksum <"$table")
(
  trap '' XFSZ
  ulimit -f 2
  TMPDIR=$work "$program" run --device host --quick --for "$work/small.toml" --out "$table" \
    >"$work/full" 2>&1
)
code=$?
if [ $code -ne 7 ] || [ "$before" != "$(cksum <"$table")" ]; then
  echo "full disk: exit $code"
  tail -3 "$work/full"
  failures=$((failures + 1))
fi

# As others read it.
if python_with h5py; then
  "$python" - "$table" <<'PYTHON' || failures=$((failures + 1))
import sys, h5py
table = h5py.File(sys.argv[1])
assert table.attrs["version"] == 3
gemm = table["gemm"]
assert set(gemm["layout"][:]) == {b"NT", b"NN", b"TN"}, set(gemm["layout"][:])
assert all(samples >= 1 for samples in gemm["samples"][:])
assert all(rate > 0 for rate in gemm["rate"][:])
assert table["elementwise/duration"].attrs["unit"] in ("ps", b"ps")
source = table["sources"]
device = source["device"][gemm["source"][0]].decode()
assert device.startswith("host"), device
assert source["gemm_library"][0].decode().startswith("OpenBLAS")
PYTHON
fi
exit $((failures > 0))
