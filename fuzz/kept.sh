#!/bin/sh
# Feeds every reader the inputs that campaigns of fuzzing kept: fuzz/corpus, the seeds of
# fuzz/seeds.txt and fuzz/corpus.tar.xz. Nothing is mutated.
#   sh fuzz/kept.sh BUILD/stepcast_replay
set -eu
replay=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -C "$work" -xJf fuzz/corpus.tar.xz
"$replay" --list | tr ' ' '\n' | xargs -P "$(nproc 2>/dev/null || echo 2)" -I{} sh -c '
  for folder in "$2/{}" "fuzz/corpus/{}"; do
    [ ! -d "$folder" ] || "$1" {} "$folder" >"$2/{}.log" 2>&1 ||
      { echo "{}: of $folder:"; tail -n 30 "$2/{}.log"; exit 255; }
  done' sh "$replay" "$work"
sh fuzz/seeds.sh --replay "$replay" >"$work/seeds.log" 2>&1 || { tail -n 30 "$work/seeds.log"; exit 1; }
echo "$(find "$work" fuzz/corpus -mindepth 2 -type f | wc -l) kept inputs, no find"
