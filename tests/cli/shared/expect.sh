# For scripts that check what a program prints and how it ends; they set `program` and source this.
: "${program:?the program to call}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# expect CODE PATTERN ARGUMENT...: exit code and a pattern in what is printed
expect() {
  code=$1 pattern=$2
  shift 2
  output=$("$program" "$@" 2>&1)
  got=$?
  if [ $got -ne "$code" ] || ! printf "%s\n" "$output" | grep -q -e "$pattern"; then
    echo "${program##*/} $*: exit $got (wanted $code, with \"$pattern\"):"
    printf '%s\n' "$output" | head -3
    failures=$((failures + 1))
  fi
}
