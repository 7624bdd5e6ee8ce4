#!/bin/sh
# Reads what a build says, with NINJA_STATUS='[%f/%t %e] ', and tells on standard output how far it is
# and, at its pace so far, for how long still: on a terminal (TERMINAL=1) in one line, else in a line
# each half minute. What else is said (errors) goes through. Ends with N of a last line "exit N".
#   ... | TERMINAL=1 CORES=2 build_progress.sh
set -eu
# Processor time of a step of which no compiler cache knows: four of them took 0.5 to 6.9 s, mean 4.1
# (gcc 12, 2026-11-29); rounded up.
step_s=5
many=10  # steps that are announced

span() {  # SECONDS as words
  if [ "$1" -lt 60 ]; then echo "$1 s"; else echo "$((($1 + 30) / 60)) min"; fi
}
drawn=
clear_line() {
  [ -z "$drawn" ] || printf '\r\033[K'
  drawn=
}

announced=
told=0
code=1
while IFS= read -r line; do
  case $line in
    '['[0-9]*/[0-9]*' '[0-9.]*'] '*) ;;
    'exit '[0-9]*)
      code=${line#exit }
      continue
      ;;
    *)
      clear_line
      printf '%s\n' "$line"
      continue
      ;;
  esac
  status=${line%%]*}
  finished=${status%%/*}
  finished=${finished#?}
  rest=${status#*/}
  total=${rest%% *}
  elapsed=${rest#* }
  elapsed=${elapsed%%.*}
  if [ "$total" -ge $many ] && [ "$total" != "$announced" ]; then
    clear_line
    [ -n "$announced" ] || echo "build: $total steps, about $(span $((total * step_s / CORES))) on" \
      "$CORES cores where no compiler cache has them, else seconds"
    announced=$total
  fi
  [ "$finished" -gt 0 ] && [ "$elapsed" -ge 2 ] || continue
  said="build: $finished of $total steps, $(span $((elapsed * (total - finished) / finished))) left"
  if [ "${TERMINAL:-}" = 1 ]; then
    printf '\r\033[K%s' "$said"
    drawn=1
  elif [ "$elapsed" -ge $((told + 30)) ]; then
    echo "$said"
    told=$elapsed
  fi
done
clear_line
exit "$code"
