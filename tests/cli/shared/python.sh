# For scripts that call Python; without one they are skipped. Sets `python`: Debian's first, for
# which Debian's packages are.

# python_with MODULE...: an interpreter that has them, else `python` stays
python_with() {
  modules=$(echo "$@" | tr ' ' ,)
  # shellcheck disable=SC2034 # of those who source this
  for candidate in /usr/bin/python3 python3; do
    "$candidate" -c "import $modules" 2>/dev/null && python=$candidate && return
  done
  return 1
}
python_with sys || { echo "skipped: no python3"; exit 77; }
