#!/bin/sh
# The pages show what the program prints: every ```console block of README.md, SKILL.md and
# docs/*.md that begins with "$ build/release/stepcast ..." is run with the programs of PROGRAMS, and
# the rest of the block is its standard output. A command goes on behind a backslash at the end of
# its line. Of their ```sh blocks each command that begins with "build/release/stepcast ..." is run
# and has to succeed. Each page of docs/ is linked from docs/README.md.
#   readme.sh check PROGRAMS [PAGE ...]    fails with the difference
#   readme.sh update PROGRAMS [PAGE ...]   writes what the programs print into the pages; of all pages,
#                                          their pictures too
set -eu
mode=$1
programs=$(cd "$2" && pwd)
cd "$(dirname "$0")/../.."
case $mode in check | update) ;; *) echo "usage: readme.sh check|update PROGRAMS" >&2; exit 2 ;; esac

fresh=$(mktemp)
output=$(mktemp)
trap 'rm -f "$fresh" "$output" "$output.err"' EXIT
num_blocks=0
num_commands=0
mkdir -p build  # where commands of pages write

# run COMMAND PAGE: with the programs of PROGRAMS, into $output.
run() {
  command=$(printf '%s\n' "$1" | sed "s|^build/release/|$programs/|")
  if ! sh -c "$command" >"$output" 2>"$output.err" </dev/null; then
    echo "$2: this command failed: $command"
    cat "$output" "$output.err"
    exit 1
  fi
}

# The page with what its commands print now, into $fresh.
refresh() {
  : >"$fresh"
  in_block=no
  while IFS= read -r line || [ -n "$line" ]; do
    if [ "$in_block" = opened ]; then
      case $line in
        '$ build/release/stepcast '*)
          command=$line
          while [ "${line%\\}" != "$line" ] && IFS= read -r line; do
            command="$command
$line"
          done
          printf '%s\n' "$command" >>"$fresh"
          if printf '%s\n' "$command" | grep -qE '.{161}'; then
            echo "$1: a line of a command is longer than 160 columns: $command"
            exit 1
          fi
          run "${command#\$ }" "$1"
          awk 1 "$output" >>"$fresh"  # ends the last line if the program did not
          num_blocks=$((num_blocks + 1))
          in_block=replaced
          continue
          ;;
        *) in_block=kept ;;
      esac
    fi
    case "$in_block:$line" in
      no:'```console') in_block=opened ;;
      no:'```sh') in_block=shell ;;
      replaced:'```' | kept:'```' | shell:'```') in_block=no ;;
      replaced:*) continue ;;
      shell:'build/release/stepcast '*)
        command=$line
        while [ "${line%\\}" != "$line" ] && printf '%s\n' "$line" >>"$fresh" && IFS= read -r line; do
          command="$command
$line"
        done
        run "$command" "$1"
        num_commands=$((num_commands + 1))
        ;;
    esac
    printf '%s\n' "$line" >>"$fresh"
  done <"$1"
}

status=0
shift 2
all=no
[ $# -gt 0 ] || { all=yes && set -- README.md SKILL.md docs/*.md; }
for page in "$@"; do
  before=$num_blocks
  before_commands=$num_commands
  refresh "$page"
  if [ "$page" = README.md ] && [ "$num_blocks" -eq "$before" ]; then
    echo "$page: no block with a command and its output"
    exit 1
  fi
  if [ "$page" = docs/README.md ] && [ $((num_commands - before_commands)) -ne 25 ]; then
    echo "$page: not five steps for each of five readers"
    exit 1
  fi
  name=${page#docs/}
  if [ "$name" != "$page" ] && [ "$name" != README.md ] &&
    ! grep -qF "]($name)" docs/README.md; then
    echo "docs/README.md does not lead to $page"
    status=1
  fi
  if [ "$mode" = update ]; then
    cat "$fresh" >"$page"
  elif ! diff -u "$page" "$fresh"; then
    echo "$page no longer shows what the program prints: ./dev readme"
    status=1
  fi
done
if [ "$mode $all" = "update yes" ]; then
  # shellcheck source=tests/cli/shared/pictures.sh
  . tests/cli/shared/pictures.sh
  drawn=$(mktemp -d)
  pictures "$programs/stepcast" . "$drawn" || { cat "$drawn/said" && exit 1; }
  for picture in docs/report/*.svg; do cp "$drawn/${picture##*/}" "$picture"; done
  rm -rf "$drawn"
fi
exit $status
