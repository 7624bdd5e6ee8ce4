#!/bin/sh
# Every verb of every program alike: help, manual page and completion name the same options, a
# misspelt option is told, and a program tells its version.
#   help.sh FOLDER_OF_PROGRAMS SOURCE
set -u
programs=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
verbs=0
options=0

fail() {
  echo "$1"
  failures=$((failures + 1))
}

# check PROGRAM [VERB]
check() {
  verbs=$((verbs + 1))
  "$programs/$1" ${2:+"$2"} --help >"$work/help" || fail "$*: --help fails"
  head -n 1 "$work/help" | grep -q "^usage: stepcast" || fail "$* --help: begins otherwise"
  tail -n 1 "$work/help" | grep -q "^ *143 " || fail "$* --help: ends without the exit codes"
  "$programs/$1" ${2:+"$2"} -h | cmp -s - "$work/help" || fail "$*: -h is not --help"
  grep '^.\{101\}' "$work/help" | grep -v '^usage: ' && fail "$* --help: long lines"
  sed -n 's/^  \(--[a-z-]*\).*/\1/p' "$work/help" | sort >"$work/options"
  "$programs/$1" completion reply ${2:+"$2"} -- | grep -v '^--help$' | sort >"$work/completed"
  diff "$work/options" "$work/completed" >&2 || fail "$*: help and completion differ"
  # The verb's section of the page, or the page of a program without verbs.
  "$programs/$1" manual troff | sed 's/\\-/-/g' |
    awk -v wanted="$(echo "${2:-description}" | tr a-z A-Z)" \
      '/^\.SH/ {inside = ($0 == ".SH " wanted)} inside' >"$work/section"
  while read -r option; do
    grep -q "^.fB$option.fR" "$work/section" || fail "$*: no $option in the manual page"
  done <"$work/options"
  if [ -s "$work/options" ]; then
    option=$(head -n 1 "$work/options")
    "$programs/$1" ${2:+"$2"} "${option}x" >"$work/out" 2>&1
    [ $? -eq 2 ] || fail "$* ${option}x: not exit code 2"
    grep -q "unknown option '${option}x', did you mean '--" "$work/out" ||
      fail "$* ${option}x: $(cat "$work/out")"
  fi
  # Both ways to write a value are read alike: what is given twice is told in the same words. Of the
  # last option; STEPCAST_CHECK=whole: of each.
  for option in $(sed -n '/=\|\.\.\. /d; s/^  \(--[a-z-]*\) [^ ].*/\1/p' "$work/help" |
    if [ "${STEPCAST_CHECK:-}" = whole ]; then cat; else tail -n 1; fi); do
    options=$((options + 1))
    apart=$("$programs/$1" ${2:+"$2"} "$option" 1 "$option" 1 2>&1)
    together=$("$programs/$1" ${2:+"$2"} "$option=1" "$option=1" 2>&1)
    [ "$apart" = "$together" ] && [ "${apart#*: option \'"$option"\' is given twice}" = "" ] ||
      fail "$*: $option 1 is '$apart', $option=1 is '$together'"
  done
  "$programs/$1" ${2:+"$2"} --utter-nonsense >"$work/out" 2>&1
  [ $? -eq 2 ] || fail "$* --utter-nonsense: not exit code 2"
  grep -q "see stepcast.* --help" "$work/out" || fail "$*: does not point to its help"
}

# A long help has headings, and first what one needs first.
"$programs/stepcast" run --help >"$work/help"
for heading in 'most used' machine 'plan and batch' 'the whole run' 'what is printed and kept'; do
  grep -qx "$heading" "$work/help" || fail "run --help: no heading '$heading'"
done
[ "$(sed -n '/^most used/,/^$/s/^  --model .*/model/p' "$work/help")" = model ] ||
  fail "run --help: --model is not among the most used"
[ "$(sed -n '/^most used/,/^$/p' "$work/help" | grep -c '^  --')" -eq 10 ] ||
  fail "run --help: not ten most used options"
"$programs/stepcast" show --help | grep -qx 'most used' && fail "show --help: headings of a short list"

for program in stepcast stepcast-calibrate stepcast-validate; do
  "$programs/$program" --help >"$work/usage"
  "$programs/$program" help | cmp -s - "$work/usage" || fail "$program help is not --help"
  tail -n 1 "$work/usage" | grep -q "^ *143 " || fail "$program --help: no exit codes at the end"
  verb=$("$programs/$program" completion reply "" | grep -v '^--' | head -n 1)
  "$programs/$program" "$verb" --help >"$work/help"
  "$programs/$program" help "$verb" | cmp -s - "$work/help" || fail "$program help $verb"
  "$programs/$program" >"$work/out" 2>"$work/err" && fail "$program without a verb succeeds"
  [ -s "$work/out" ] || cmp -s "$work/err" "$work/usage" || fail "$program alone prints no usage"
  for verb in $("$programs/$program" completion reply "" | grep -v '^--'); do
    grep -q "^  $verb " "$work/usage" || fail "$program --help: no $verb"
    case "$program $verb" in
      "stepcast calibrate" | "stepcast validate") # programs of their own
        "$programs/stepcast-$verb" --help >"$work/own"
        "$programs/stepcast" "$verb" --help | cmp -s - "$work/own" || fail "stepcast $verb --help" ;;
      "stepcast diagnose") # a verb of another program
        "$programs/stepcast-validate" "$verb" --help >"$work/own"
        "$programs/stepcast" "$verb" --help | cmp -s - "$work/own" || fail "stepcast $verb --help" ;;
      *) check "$program" "$verb" ;;
    esac
  done
done
check stepcast-trainer
[ ! -x "$programs/stepcast-sweep" ] || check stepcast-sweep  # built where MPI is found
[ "$verbs" -ge 22 ] || fail "only $verbs verbs were found"
least=25
[ "${STEPCAST_CHECK:-}" = whole ] && least=100
[ "$options" -ge $least ] || fail "only $options options with a value were found"

for program in stepcast stepcast-calibrate stepcast-validate stepcast-trainer; do
  "$programs/$program" --version | grep -q "^$program [0-9]*\.[0-9]" || fail "$program --version"
  "$programs/$program" completion bash | bash -n || fail "$program: bash cannot read the completion"
done

# Both ways to write a value.
set -- collective all_reduce --json
"$programs/stepcast" "$@" --gpu h100 --bytes 1MiB --set cluster.nodes=2 >"$work/apart"
"$programs/stepcast" "$@" --gpu=h100 --bytes=1MiB --set=cluster.nodes=2 >"$work/together"
grep -q time_us "$work/apart" && cmp "$work/apart" "$work/together" || fail "--name=VALUE differs"
table=$programs/published.h5
"$programs/stepcast-calibrate" export --csv "$table" >"$work/apart"
"$programs/stepcast-calibrate" export --csv="$table" >"$work/together"
[ -s "$work/apart" ] && cmp "$work/apart" "$work/together" || fail "export --csv=FILE differs"

# A full disk behind standard output, of the help as well.
if [ -e /dev/full ]; then
  for program in stepcast stepcast-calibrate stepcast-validate stepcast-trainer; do
    "$programs/$program" --help >/dev/full 2>"$work/err"
    [ $? -eq 7 ] || fail "$program --help on a full disk"
    grep -q "^$program: standard output cannot be written" "$work/err" || fail "$program: no reason"
  done
fi
exit $((failures > 0))
