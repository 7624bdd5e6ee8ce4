#!/bin/sh
# import stepcast: by the module where it is built and by the program, the same answers; doctests;
# results read by pandas, xarray and h5py; the notebook of docs/ executed.
#   python.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
programs=$1
source=$2
here=$source/tests/cli/python
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset STEPCAST_PROGRAM STEPCAST_IN_PROCESS
export PYTHONPATH="$programs/python" PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1
cd "$work"

# Debian's Python has Debian's packages; another may come first in PATH.
python=/usr/bin/python3
[ -x "$python" ] || python=python3
command -v "$python" >/dev/null 2>&1 || { echo "python: not tried, no python3"; exit 77; }

# Without any package: the words of the command line, answers, messages, python3 -m.
"$python" -S "$here/plain.py"
"$python" -m stepcast --version | grep -q '^stepcast [0-9]'
status=0
"$python" -m stepcast run --modle x 2>said || status=$?
[ "$status" = 2 ] && grep -q "did you mean '--model'" said || { cat said; exit 1; }

if ! "$python" -c 'import pandas, xarray, h5py' 2>/dev/null; then
  echo "python: reading not tried, no pandas, xarray and h5py for $python"
  exit 77
fi
STEPCAST_IN_PROCESS=0 "$python" "$here/doctests.py"
STEPCAST_IN_PROCESS=0 "$python" "$here/reading.py" "$source"
if ls "$programs"/python/stepcast/_session.*.so >/dev/null 2>&1; then
  "$python" "$here/doctests.py"
  "$python" "$here/module.py"
else
  echo "python: the module is not built, the program alone is tried"
fi

if ! "$python" -c 'import nbconvert, ipykernel' 2>/dev/null; then
  echo "python: the notebook is not executed, no jupyter nbconvert and ipykernel"
  exit 77
fi
# Jupyter's own folders: nothing of the user's is read or written.
export JUPYTER_CONFIG_DIR="$work/config" JUPYTER_DATA_DIR="$work/data" IPYTHONDIR="$work/ipython" \
  JUPYTER_RUNTIME_DIR="$work/runtime"
"$python" -m nbconvert --to notebook --execute --ExecutePreprocessor.timeout=120 \
  --output-dir "$work" --output executed "$source/docs/python.ipynb" 2>said || { cat said; exit 1; }
"$python" "$here/executed.py" "$work/executed.ipynb"
