# For scripts that wait: for an event, which they look for again and again. A limit of time is only
# for what never comes, and no test passes or fails by how soon something came.

# patience SECONDS: so many, and as many times more as this machine is slower or more crowded now
# than a calm one, on which the loop takes 0.15 s; sanitizers slow the programs as well.
patience() {
  begin=$(cut -d ' ' -f 1 /proc/uptime)
  awk 'BEGIN { for (i = 0; i < 3000000; ++i) sum += i }'
  cut -d ' ' -f 1 /proc/uptime | awk -v seconds="$1" -v begin="$begin" \
    -v slowed="${UBSAN_OPTIONS:+yes}${TSAN_OPTIONS:+yes}${LLVM_PROFILE_FILE:+yes}" '{
      factor = ($1 - begin) / 0.15
      factor = factor < 1 ? 1 : factor > 10 ? 10 : factor
      print int(seconds * factor * (slowed == "" ? 1 : 4) + 0.999)
    }'
}

# wait_until COMMAND...: until it succeeds; not where it has failed 1200 times with a tenth of a
# second between, which takes a crowded machine longer than a calm one.
wait_until() {
  for _ in $(seq 1200); do
    "$@" && return
    sleep 0.1
  done
  return 1
}

# says_in FILE PATTERN: for wait_until
says_in() {
  grep -q -s -e "$2" "$1"
}

# Of processes, by /proc alone: bare systems have no ps, some kernels no lists of children.
stats_of_processes() {
  cat /proc/[0-9]*/stat 2>/dev/null
}

# children_of PID [NAME]: all, or those of that name (its first 15 letters)
children_of() {
  stats_of_processes | awk -v parent="$1" -v name="${2:-}" '{
    number = $1
    called = substr($0, index($0, "(") + 1)
    sub(/\) [A-Z] [0-9]+ .*/, "", called)
    sub(/.*\) /, "")
    if ($2 == parent && (name == "" || called == name)) print number
  }'
}

# family_of PID: its children, theirs and so on
family_of() {
  for child in $(children_of "$1"); do
    echo "$child"
    family_of "$child"
  done
}

# state_of PID: a letter as ps(1) has it; nothing where it is gone
state_of() {
  sed 's/.*) \(.\) .*/\1/' "/proc/$1/stat" 2>/dev/null
}

# ended PID...: none runs; one that its parent has not looked after yet does not
ended() {
  for process in "$@"; do
    case $(state_of "$process") in '' | Z | X) ;; *) return 1 ;; esac
  done
}

# stopped PID
stopped() {
  [ "$(state_of "$1")" = T ]
}
