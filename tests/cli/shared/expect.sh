# For scripts that check what a program prints and how it ends; they set `program` and source this.
: "${program:?the program to call}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# unfolded: standard input without the breaks that keep lines within 100 columns. Where a line that
# names a file is broken depends on the length of that file's path.
unfolded() {
  awk '
    NR == 1 { whole = last = $0; next }
    { # a figure and its unit go to the next line together
      joins = length(last) + 2 + length($1) + length($2) > 100 && NF > 0
      last = $0
    }
    joins { sub(/^ +/, ""); whole = whole " " $0; next }
    { print whole; whole = $0 }
    END { print whole }'
}

# printed PATTERN TEXT: as it is printed, or where a break falls into the pattern
printed() {
  printf '%s\n' "$2" | grep -q -e "$1" || printf '%s\n' "$2" | unfolded | grep -q -e "$1"
}

# expect CODE PATTERN ARGUMENT...: exit code and a pattern in what is printed
expect() {
  code=$1 pattern=$2
  shift 2
  output=$("$program" "$@" 2>&1)
  got=$?
  if [ $got -ne "$code" ] || ! printed "$pattern" "$output"; then
    echo "${program##*/} $*: exit $got (wanted $code, with \"$pattern\"):"
    printf '%s\n' "$output" | head -20
    failures=$((failures + 1))
  fi
}
