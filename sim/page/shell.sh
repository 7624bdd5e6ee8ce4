#!/bin/sh
# Puts the page's parts and the program into one file, the shell that `stepcast page` fills:
#   sh sim/page/shell.sh PROGRAM.wasm OUT.html
set -eu
folder=$(dirname "$0")
out=$2.partial
gzip -9nc "$1" | base64 | tr -d '\n' >"$2.program"
while IFS= read -r line; do
  case $line in
    *@program@*)
      printf '%s' "${line%%@program@*}"
      cat "$2.program"
      printf '%s\n' "${line#*@program@}"
      ;;
    @host.js@) cat "$folder/../browser/host.js" ;;
    @*@) name=${line#@}; cat "$folder/${name%@}" ;;
    *) printf '%s\n' "$line" ;;
  esac
done <"$folder/page.html" >"$out"
mv "$out" "$2"
rm "$2.program"
