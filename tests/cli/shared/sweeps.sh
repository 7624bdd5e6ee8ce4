# For scripts about sweeps in parts; they have set `work`, the source is $2.
# shellcheck source=tests/cli/shared/patience.sh
. "$2/tests/cli/shared/patience.sh"
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"

fail() {
  echo "$*"
  exit 1
}

# scenario FILE LINE...: 1B on H100, then these lines of [sweep]
scenario() {
  file=$1
  shift
  printf '%s\n' '[model]' 'name = "llama2-1b"' '[cluster]' 'node = "dgx-h100"' '[batch]' \
    'local = 1' '[sweep]' "$@" >"$file"
}

# until_lines N FILE: waits until N points are kept there
until_lines() {
  wait_until has_lines "$1" "$2" || fail "$2 never had $1 lines"
}
has_lines() {
  [ -f "$2" ] && [ "$(wc -l <"$2")" -ge "$1" ]
}

# same A B: equal files
same() {
  cmp "$1" "$2" || fail "$1 and $2 differ"
}

# no_row_twice N FOLDER: its lines are that many objects of JSON, each of another point
no_row_twice() {
  cat "$2"/results*.jsonl | "$python" -c '
import json, sys
ids = [json.loads(line)["id"] for line in sys.stdin]
sys.exit(0 if len(ids) == len(set(ids)) == int(sys.argv[1]) else
         f"{len(ids)} lines of {len(set(ids))} points, not {sys.argv[1]}")' "$1" || fail "in $2"
}
