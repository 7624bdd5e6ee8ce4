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
# shellcheck source=tests/cli/shared/patience.sh
. "$2/tests/cli/shared/patience.sh"
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"
unset STEPCAST_PROGRAM STEPCAST_IN_PROCESS
export PYTHONPATH="$programs/python" PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1
cd "$work"

# Without any package: the words of the command line, answers, messages, python3 -m.
"$python" -S "$here/plain.py"
"$python" -m stepcast --version | grep -q '^stepcast [0-9]'
status=0
"$python" -m stepcast run --modle x 2>said || status=$?
[ "$status" = 2 ] && grep -q "did you mean '--model'" said || { cat said; exit 1; }

if ! python_with pandas xarray h5py; then
  echo "python: reading not tried, no pandas, xarray and h5py for $python"
  exit 77
fi
STEPCAST_IN_PROCESS=0 "$python" "$here/reading.py" "$source"
module=no
ls "$programs"/python/stepcast/_session.*.so >/dev/null 2>&1 && module=yes
# The examples by the module, STEPCAST_CHECK=whole: by the program as well.
if [ $module = no ] || [ "${STEPCAST_CHECK:-}" = whole ]; then
  STEPCAST_IN_PROCESS=0 "$python" "$here/doctests.py"
fi
if [ $module = yes ]; then
  "$python" "$here/doctests.py"
  "$python" "$here/module.py"
else
  echo "python: the module is not built, the program alone is tried"
fi

if [ "${STEPCAST_CHECK:-}" != whole ]; then
  echo "python: the notebook is not executed, that takes STEPCAST_CHECK=whole"
  exit 0
fi
if ! python_with nbconvert ipykernel pandas xarray h5py; then
  echo "python: the notebook is not executed, no jupyter nbconvert and ipykernel"
  exit 77
fi
# Jupyter's own folders: nothing of the user's is read or written. Sockets there as well: no port.
export JUPYTER_CONFIG_DIR="$work/config" JUPYTER_DATA_DIR="$work/data" IPYTHONDIR="$work/ipython" \
  JUPYTER_RUNTIME_DIR="$work/runtime"
# Of a copy: IPC's sockets lie beside the notebook.
cp "$source/docs/python.ipynb" "$work"
"$python" -m nbconvert --to notebook --execute --KernelManager.transport=ipc \
  --ExecutePreprocessor.timeout="$(patience 120)" \
  --ExecutePreprocessor.startup_timeout="$(patience 240)" \
  --output-dir "$work" --output executed "$work/python.ipynb" 2>said || { cat said; exit 1; }
"$python" "$here/executed.py" "$work/executed.ipynb"
