#!/bin/sh
# stepcast mcp without a client: what it answers line by line, bad arguments, a call that is
# cancelled while it runs, memory after many calls.
#   mcp.sh FOLDER_OF_PROGRAMS SOURCE
set -u
most_growth=400
if [ -n "${ASAN_OPTIONS:-}" ]; then  # which holds freed memory back
  export ASAN_OPTIONS="$ASAN_OPTIONS:quarantine_size_mb=1:thread_local_quarantine_size_kb=64"
  most_growth=1600
fi
program=$1/stepcast
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/patience.sh
. "$2/tests/cli/shared/patience.sh"
mkdir "$work/answers"

call() { # ID TOOL ARGUMENTS
  printf '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"%s","arguments":%s}}\n' \
    "$1" "$2" "$3"
}

# says NAME PATTERN: what the server writes for the lines of standard input. A pipe ends in a shell
# of its own, so that a file counts.
says() {
  output=$("$program" mcp --folder "$work/answers" 2>&1)
  printf '%s\n' "$output" | grep -q -e "$2" && return
  echo "$1: no '$2' in:"
  printf '%s\n' "$output" | cut -c1-300 | head -5
  echo "$1" >>"$work/failed"
}

hello='{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"%s","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}\n'
small='{"model":"llama3-8b","gpu":"h100","nodes":1,"data":"zero3","local-batch":1}'
for version in 2025-06-18 2025-03-26 2024-11-05; do
  # shellcheck disable=SC2059 # the format is ours
  printf "$hello" $version | says "a known version" "\"protocolVersion\":\"$version\""
done
# shellcheck disable=SC2059
printf "$hello" 2099-01-01 | says "an unknown version" '"protocolVersion":"2025-06-18"'
printf '{"jsonrpc":"2.0","id":"a","method":"ping"}\n' | says ping '"id":"a","result":{}'
printf '{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n' | says "its tools" '"name":"run".*"inputSchema".*"outputSchema".*"name":"search"'
printf '{"jsonrpc":"2.0","method":"notifications/initialized"}\n{"jsonrpc":"2.0","id":1,"method":"ping"}' |
  says "no answer to a notification" '^{"jsonrpc":"2.0","id":1,"result":{}}$'
printf '[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]\n' |
  says "a batch" '^\[{.*"id":1.*"id":2.*}\]$'
printf '{"jsonrpc":"2.0","id":1,"method":"no/such"}\n' | says "an unknown method" '"code":-32601'
printf 'no json\n' | says "no JSON" '"code":-32700'
printf '7\n{}\n[]\n[[[[{"a":\n' | says "no request" '"code":-32600'
call 1 no-such '{}' | says "an unknown tool" '"code":-32602'

call 1 run "$small" | says "a step" '"structuredContent":{"stepcast":.*"schema":"run/1".*"step_time_s":'
call 1 show '{"words":["models"]}' | says "text" 'llama3-8b'
call 1 explain '{"words":["mfu"]}' | says "an explanation" 'FLOPs utilisation'
call 1 run '{"model":"llama3-8b","gpu":"h100","nodes":1,"data":"ddp","local-batch":64}' |
  says "a plan that does not fit is an answer" '"structuredContent":.*"refused":'
for wrong in '{"modle":"llama3-8b"}' '{"model":"llama-none","gpu":"h100"}' '{"nodes":[1]}' \
  '{"nodes":{"a":1}}' '{"words":["--out=x"]}' '{"ignore-memory":1}' '{"report":"x.html"}' \
  '{"csv":"x"}' '{"timeline":"x.json"}' '[]' '"x"' '{"words":["/etc/passwd"]}' \
  '{"model":"a\u0000b"}' '{"set":{"plan.tensor":{}}}' '{}'; do
  call 1 run "$wrong" | says "$wrong" '"isError":true'
done
call 1 run '{"modle":"llama3-8b"}' | says "a hint" "did you mean"
call 1 run '{"model":"llama-none","gpu":"h100"}' | says "the program's hint" "no such model\|unknown model\|did you mean"

# It writes below its folder alone.
ln -s / "$work/answers/away"
for place in ../x /etc/x away/etc/x a/../../x ""; do
  call 1 run "{\"model\":\"llama3-8b\",\"gpu\":\"h100\",\"nodes\":1,\"data\":\"zero3\",\"local-batch\":1,\"out\":\"$place\"}" |
    says "out '$place'" 'outside.*"isError":true'
done
call 1 run "{\"model\":\"llama3-8b\",\"gpu\":\"h100\",\"nodes\":1,\"data\":\"zero3\",\"local-batch\":1,\"out\":\"first\"}" |
  says "out below the folder" '"structuredContent"'
[ -s "$work/answers/first/results.json" ] || { echo "--out wrote nothing"; failures=$((failures + 1)); }
output=$(call 1 run "{\"model\":\"llama3-8b\",\"out\":\"x\"}" | "$program" mcp)
case $output in *"takes no 'out'"*) ;; *) echo "out without a folder: $output"; failures=$((failures + 1)) ;; esac
expect 2 "is no folder" mcp --folder "$work/none"

# A server that stays: lines go in by descriptor 3, answers come into a file.
mkfifo "$work/in"
"$program" mcp <"$work/in" >"$work/out" 2>"$work/errors" &
server=$!
exec 3>"$work/in"
has_answers() { [ "$(wc -l <"$work/out")" -ge "$1" ]; }
answers() { # COUNT: waits until so many lines have come
  wait_until has_answers "$1" || { echo "only $(wc -l <"$work/out") of $1 answers"; return 1; }
}
resident() { awk '/VmRSS/ { print $2 }' "/proc/$server/status"; }

# A search of minutes, cancelled: no answer, its process is gone, the next call is answered.
children() { cat "/proc/$server/task/$server/children" 2>/dev/null; }
runs() { [ -n "$(children)" ]; }
rests() { [ -z "$(children)" ]; }
call 7 search '{"model":"llama2-70b","gpu":"h100","nodes":64,"global-batch":1024,"all":true}' >&3
wait_until runs || { echo "the search does not run"; failures=$((failures + 1)); }
printf '{"jsonrpc":"2.0","id":8,"method":"ping"}\n' >&3
answers 1 || failures=$((failures + 1))
printf '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}\n' >&3
call 9 explain '{"words":["mfu"]}' >&3
answers 2 || failures=$((failures + 1))
wait_until rests || { echo "the cancelled search still runs"; failures=$((failures + 1)); }
grep -q '"id":7' "$work/out" && { echo "a cancelled call is answered"; failures=$((failures + 1)); }

# Many calls: bad ones, pings and real ones. Nothing may stay of a call.
round() { # of 500 pings, 300 bad calls and 20 good ones
  awk -v call="$(call 1 run '{"modle":1}')" -v good="$(call 2 explain '{"words":["mfu"]}')" 'BEGIN {
    for (i = 0; i < 500; ++i) print "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}"
    for (i = 0; i < 300; ++i) print call
    for (i = 0; i < 20; ++i) print good }' >&3
}
round
answers 822 || failures=$((failures + 1))
before=$(resident)
for _ in 1 2 3 4; do round; done
answers 4102 || failures=$((failures + 1))
after=$(resident)
grown=$((after - before))
echo "memory: $before kB, after 3,280 further calls $after kB"
[ $grown -le $most_growth ] || { echo "it grows: $grown kB"; failures=$((failures + 1)); }
exec 3>&-
wait $server || { echo "the server ended with $?"; failures=$((failures + 1)); }
[ ! -s "$work/errors" ] || { head -3 "$work/errors"; failures=$((failures + 1)); }
[ ! -e "$work/failed" ] || failures=$((failures + $(wc -l <"$work/failed")))
exit $((failures > 0))
