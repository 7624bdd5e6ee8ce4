#!/bin/sh
# The long checks, part by part; `./dev test` and the instruction gate are the short ones. Each part
# that ran leaves build/check/PART: its commit, whether it passed, its seconds. Before an issue is
# called resolved every part has passed on the tree's last commit, or again since what it looks at
# changed.
#   check.sh                run all parts
#   check.sh --from PART    go on with PART
#   check.sh --only PART    that one
#   check.sh --table        what the parts left: nothing runs
set -u
cd "$(dirname "$0")/../.." || exit 1
stamps=build/check
parts="golden gate replay package page whole clang asan tsan fuzz faults"

about() {
  case $1 in
    golden) echo "gcc -O1 predicts what -O3 does" ;;
    gate) echo "instruction counts of a dozen cases" ;;
    replay) echo "kept inputs of fuzzing under ASan and UBSan" ;;
    package) echo "a Debian package and an archive, tried in bare Debian 12 and 13" ;;
    page) echo "the program as WebAssembly is the native one; its page in two browsers" ;;
    whole) echo "the suite in full, with browser, Slurm, MPI and Jupyter" ;;
    clang) echo "each file alone by clang, the same predictions" ;;
    asan) echo "the suite under ASan and UBSan" ;;
    tsan) echo "what runs on several threads, under TSan" ;;
    fuzz) echo "twenty seconds of libFuzzer a reader" ;;
    faults) echo "a thousand kills, pauses and resets; every writer on every disk that fails" ;;
  esac
}

run_part() {
  case $1 in
    golden | replay | clang | asan | tsan) ./dev "$1" ;;
    gate) ./dev bench gate ;;
    package)
      ./dev package
      code=$?
      [ $code -eq 0 ] || [ $code -eq 77 ]  # 77: nothing to try it in, it says so
      ;;
    page)
      ./dev page --out "$stamps/stepcast.html" && cmake --build build/wasm --target test_wasm &&
        cmake --build --preset tests --target tests && ctest --preset release -L browser
      ;;
    whole) STEPCAST_CHECK=whole ./dev test ;;
    fuzz) ./dev fuzz all 20 ;;
    faults) ./dev build && cmake --build --preset faults && faults_and_disks ;;
  esac
}

# Each keeps one core busy.
faults_and_disks() {
  python3 tests/faults/disks.py build/release . >"$stamps/disks.log" 2>&1 &
  disks=$!
  failed=0
  python3 tests/faults/faults.py build/release 1000 || failed=1
  wait $disks || failed=1
  cat "$stamps/disks.log"
  return $failed
}

# The commit; with a + where files differ from it.
commit_now() {
  printf '%s%s' "$(git rev-parse --short HEAD 2>/dev/null || echo none)" \
    "$([ -z "$(git status --porcelain 2>/dev/null)" ] || echo +)"
}

table() {
  now=$(commit_now)
  printf '%-8s %-7s %-10s %5s %-22s %s\n' part result commit min since what
  for part in $parts; do
    result=- commit=- seconds=0 since=
    if [ -f "$stamps/$part" ]; then
      read -r result commit seconds <"$stamps/$part"
      [ "$commit" = "$now" ] || since="$(git diff --name-only "${commit%+}" 2>/dev/null | wc -l) files changed"
    fi
    printf '%-8s %-7s %-10s %5s %-22s %s\n' "$part" "$result" "$commit" $(((seconds + 30) / 60)) \
      "$since" "$(about "$part")"
  done
}

known() {
  for part in $parts; do
    [ "$part" != "$1" ] || return 0
  done
  echo "check: no part '$1'; there are: $parts" >&2
  exit 2
}

chosen=$parts
case ${1:-} in
  '') ;;
  --table)
    table
    exit 0
    ;;
  --from)
    known "${2:-}"
    chosen=$(echo "$parts" | sed "s/.*\b$2\b/$2/")
    ;;
  --only)
    known "${2:-}"
    chosen=$2
    ;;
  *)
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p;}' "$0"
    exit 2
    ;;
esac

mkdir -p "$stamps"
status=0
for part in $chosen; do
  printf '\n== %s: %s\n' "$part" "$(about "$part")"
  commit=$(commit_now)
  began=$(date +%s)
  result=passed
  run_part "$part" || result=failed
  [ $result = passed ] || status=1
  echo "$result $commit $(($(date +%s) - began))" >"$stamps/$part"
done
echo
table
exit $status
