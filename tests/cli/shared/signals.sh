# For scripts that let a signal come at a byte that a program writes, not at a time: on every machine
# the same is finished by then. They have set `programs`, the source is $2, and have `work`.
: "${programs:?} ${work:?}"
STEPCAST_FAILING_FILES=$programs/failing_files.so
# A release build has no tests: then it is built here.
if [ ! -e "$STEPCAST_FAILING_FILES" ]; then
  STEPCAST_FAILING_FILES=$work/failing_files.so
  ${CXX:-c++} -std=c++20 -O1 -shared -fPIC "$2/tests/faults/failing_files.cpp" -ldl \
    -o "$STEPCAST_FAILING_FILES" 2>/dev/null ||
    { echo "skipped: failing_files.so is not built, and there is no compiler"; exit 77; }
fi
export STEPCAST_FAILING_FILES

# signal_at BYTE NUMBER PLACE: a program that is started now gets the signal of that number when it
# writes that byte into the file or folder PLACE of $work. For a subshell, which ends with exec.
signal_at() {
  export LD_PRELOAD="$STEPCAST_FAILING_FILES" STEPCAST_FAIL="ends $2 $1"
  STEPCAST_FAIL_UNDER=$(cd "$work" && pwd -P)/$3
  export STEPCAST_FAIL_UNDER
}
