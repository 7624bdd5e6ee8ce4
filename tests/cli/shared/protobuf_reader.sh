# For scripts that let protoc read what a program writes; they have sourced expect.sh. Sets
# `python`, one that has python3-protobuf, and skips the test where there is none.
python=
for candidate in python3 /usr/bin/python3; do
  if "$candidate" -c 'import google.protobuf' 2>/dev/null; then
    python=$candidate
    break
  fi
done
if [ -z "$python" ] || ! command -v protoc >/dev/null; then
  echo "skipped: needs protoc and python3-protobuf"
  exit 77
fi
# A newer protoc's module asks for its own version of the runtime.
export PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python
