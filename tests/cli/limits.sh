# Machines that give little: no address space (ulimit -v), folders that cannot be written, no
# /dev/shm, clocks that jump. Each program ends by itself, with a sentence and a code of its table.
# Usage: limits.sh FOLDER_OF_PROGRAMS SOURCE_FOLDER
set -u
programs=$1
program=$1/stepcast
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/patience.sh
. "$2/tests/cli/shared/patience.sh"
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"
cd "$work" || exit 1
# shellcheck disable=SC3045  # dash and bash have it
ulimit -c 0

fail() {
  echo "$1"
  failures=$((failures + 1))
}

PYTHONPATH=$2/tests/faults "$python" - <<'PYTHON'
from scenarios import nodes, points, tiny
for name, text in (("tiny", tiny), ("points", points), ("nodes", nodes),
                   ("one", points[:points.index("[sweep]")])):
    with open(f"{name}.toml", "w", encoding="utf-8") as file:
        file.write(text)
PYTHON
short="--steps 3 --warm-up 1 --quiet"
has_blas=yes
"$programs/stepcast-trainer" tiny.toml --ranks threads $short >said 2>&1 ||
  ! grep -q 'without OpenBLAS' said || has_blas=no

# ---- Little address space, from what the loader needs to plenty.

most_s=$(patience 100)
# under_kib KIB PROGRAM ARGUMENT...
under_kib() {
  kib=$1 tool=$2
  shift 2
  (
    # shellcheck disable=SC3045  # dash and bash have it
    ulimit -v "$kib"
    exec timeout "$most_s" "$programs/$tool" "$@"
  ) >said 2>errors
  code=$?
  set -- "$tool" "$@"
  # 127: it could not be loaded, which the loader says; 139 without a word: the kernel could not.
  case $code in
    0 | 1 | 3 | 6 | 7 | 127)
      [ $code -eq 0 ] || [ -s errors ] || fail "$kib KiB, $*: no sentence"
      ;;
    *) fail "$kib KiB, $*: exit $code: $(tail -1 errors)" ;;
  esac
  ! grep -q 'please report it' errors || fail "$kib KiB, $*: $(cat errors)"
}
# under MIB PROGRAM ARGUMENT...
under() {
  mib=$1
  shift
  under_kib $((mib * 1024)) "$@"
}
sanitized=no
grep -q 'fsanitize' "$programs/CMakeCache.txt" 2>/dev/null && sanitized=yes
if [ $sanitized = yes ]; then
  echo "sanitizers want all the address space: no ulimit -v"
else
  sizes="28 36 40 44 52 96" parts="0 4" more="64 400 800 1040 2400"
  if [ "${STEPCAST_CHECK:-}" = whole ]; then
    sizes="24 28 32 36 38 40 42 44 48 52 56 64 96 128 256" parts="0 1 2 3 4 5 6 7"
    more="64 160 256 400 640 720 800 880 960 1040 1200 1600 2400"
  fi
  for size in $sizes; do
    under $size stepcast run one.toml --out out --csv out.csv
    under $size stepcast sweep points.toml --threads 4 --csv out.csv
    under $size stepcast search one.toml --fix plan.data=zero3 --fix plan.prefetch=1 \
      --fix plan.reduce=software --fix plan.recompute_every=1 --threads 4 --quiet
  done
  # Where memory ends decides what is under way: the whole stretch in which it does.
  for size in 37 38 39 40; do
    for part in $parts; do
      under_kib $((size * 1024 + part * 128)) stepcast sweep points.toml --threads 4 --csv out.csv
    done
  done
  for size in $more; do
    under $size stepcast-trainer tiny.toml --ranks threads $short --checkpoint kept
    under $size stepcast-trainer tiny.toml --ranks processes $short
    under $size stepcast-validate layers
    under $size stepcast-calibrate import "$2/tests/calibrate/fixtures/all_reduce_a100_8.log" \
      --out table.h5
  done
fi

# ---- Folders that cannot be written: a mount that is read-only, for root as well.

mkdir locked
if unshare -m sh -c 'mount -t tmpfs -o ro none "$1"' sh "$work/locked" 2>/dev/null; then
  # locked PATTERN PROGRAM ARGUMENT...
  locked() {
    pattern=$1 tool=$2
    shift 2
    unshare -m sh -c 'mount -t tmpfs -o ro none locked && exec "$@"' sh "$programs/$tool" "$@" \
      >said 2>&1
    code=$?
    [ $code -eq 7 ] || fail "read-only, $tool $*: exit $code: $(tail -1 said)"
    grep -q "$pattern" said || fail "read-only, $tool $*: $(tail -1 said)"
  }
  locked 'cannot be written' stepcast run one.toml --out locked/out
  locked 'cannot be written' stepcast run one.toml --out locked
  locked 'locked/o.csv: cannot be written' stepcast run one.toml --csv locked/o.csv
  locked 'cannot be written' stepcast sweep points.toml --out locked/out
  locked 'cannot be written' stepcast export one.toml --chakra locked/traces
  locked 'cannot be written' stepcast-calibrate import \
    "$2/tests/calibrate/fixtures/all_reduce_a100_8.log" --out locked/table.h5
  if [ $has_blas = yes ]; then
    locked 'cannot be written' stepcast-trainer tiny.toml --ranks threads $short \
      --checkpoint locked/kept
    locked 'cannot be written' stepcast-trainer tiny.toml --ranks threads $short --out locked/r.json
    locked 'cannot be written' stepcast-validate run tiny.toml --as-calibrated --out locked/run
  fi
else
  echo "no mounts here: read-only folders are not tried"
fi

# ---- No /dev/shm: ranks and boxes need none. MPI falls back to files, or says what it lacks.

if [ $has_blas = yes ] && unshare -m mount -t tmpfs -o ro none /dev/shm 2>/dev/null; then
  # bare PROGRAM ARGUMENT...
  bare() {
    tool=$1
    shift
    unshare -m sh -c 'mount -t tmpfs -o ro none /dev/shm && exec "$@"' sh "$programs/$tool" "$@" \
      >said 2>&1
    code=$?
    case $code in
      0) ;;
      77) echo "skipped: $(head -1 said)" ;;
      *) fail "no /dev/shm, $tool $*: exit $code: $(tail -2 said)" ;;
    esac
  }
  for kind in threads processes; do
    bare stepcast-trainer tiny.toml --ranks $kind $short
  done
  if command -v mpirun >/dev/null 2>&1; then
    unshare -m sh -c 'mount -t tmpfs -o ro none /dev/shm && exec "$@"' sh \
      "$programs/stepcast-trainer" tiny.toml --ranks mpi $short >said 2>&1
    code=$?
    [ $code -eq 0 ] || { [ $code -le 7 ] && [ -s said ]; } ||
      fail "no /dev/shm, mpi: exit $code: $(tail -2 said)"
  fi
  "$programs/stepcast-calibrate" run --device host --quick --for tiny.toml --out host.h5 \
    >said 2>&1 || fail "no table: $(tail -1 said)"
  bare stepcast-calibrate run --device host --quick --resume --for tiny.toml --out host.h5
  # shellcheck disable=SC2086  # words
  bare stepcast-validate cluster nodes.toml --as-calibrated --table host.h5 --compute waits \
    ${short% --quiet}
else
  echo "no mounts or no OpenBLAS here: /dev/shm stays"
fi

# ---- A clock that jumps: a run under way, and the time-outs of one whose peers do not come.

fake=$(find /usr/lib -name 'libfaketimeMT.so.1' 2>/dev/null | head -1)
if [ $sanitized = yes ]; then
  echo "sanitizers want to be loaded first: clocks do not jump"
elif [ $has_blas = yes ] && [ -n "$fake" ]; then
  # Wall clock alone: what it says is in a file, which is changed meanwhile.
  export FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_NO_CACHE=1 FAKETIME_TIMESTAMP_FILE=$work/clock
  echo '+0d' >clock
  LD_PRELOAD=$fake "$programs/stepcast-trainer" tiny.toml --steps 4000 --warm-up 1 --quiet \
    --patience "$(patience 5) s" --out jumped.json >said 2>&1 &
  running=$!
  for jump in '+2d' '-400d' '+4000d' '+0d'; do
    sleep 0.2
    echo "$jump" >clock
  done
  wait $running || fail "a clock that jumps: exit $?: $(tail -1 said)"
  # Two seconds of patience are two seconds, whatever the wall clock says.
  echo '-400d' >clock
  begin=$(cut -d. -f1 /proc/uptime)
  LD_PRELOAD=$fake timeout "$most_s" "$programs/stepcast-trainer" tiny.toml $short --nodes 2 --node 1 \
    --rendezvous "$work/meet" --patience "2 s" >said 2>&1 &
  running=$!
  sleep 1
  echo '+4000d' >clock
  wait $running
  code=$?
  took=$(($(cut -d. -f1 /proc/uptime) - begin))
  [ $code -eq 6 ] || fail "a peer that does not come: exit $code: $(tail -1 said)"
  [ $took -ge 2 ] || fail "2 s of patience took $took s"
  unset FAKETIME_DONT_FAKE_MONOTONIC FAKETIME_NO_CACHE FAKETIME_TIMESTAMP_FILE
else
  echo "no libfaketime here (Debian: faketime): clocks do not jump"
fi
# Time-outs are measured by a clock that does not jump.
if grep -rnE 'system_clock|gettimeofday|CLOCK_REALTIME|high_resolution_clock' --include='*.[ch]pp' \
  "$2"/engine "$2"/topology "$2"/workloads "$2"/sim "$2"/calibrate "$2"/validate; then
  fail "a clock that jumps"
fi
exit $((failures > 0))
