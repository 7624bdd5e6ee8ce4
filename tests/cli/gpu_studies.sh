#!/bin/sh
# The end of `./dev gpu` on a made-up measurement: the studies on the published table and on a
# measured one, and the difference. gpu_studies.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
programs=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "gpu_studies: $*" >&2
  exit 1
}

# Every product of the Llama-2 7B layer on an H100, at 500 TFLOP/s: slower than published.
{
  echo "gpu,kind,shape,dtype,value,unit,source,url_or_repo_path,confidence,data,choice,cache,samples"
  for tokens in 4096 8192; do
    for weight in "12288 4096" "4096 4096" "22016 4096" "11008 4096" "4096 11008" "32000 4096"; do
      n=${weight% *}
      k=${weight#* }
      for call in "m=$tokens;n=$n;k=$k;opA=N;opB=T" "m=$tokens;n=$k;k=$n;opA=N;opB=N" \
        "m=$n;n=$k;k=$tokens;opA=T;opB=N"; do
        echo "H100-SXM5-80GB,gemm,$call,bf16,500,TFLOP/s,made up,nowhere,high,random,heuristic,cold,50"
      done
    done
  done
} >"$work/measured.csv"
"$programs/stepcast-calibrate" import "$work/measured.csv" --out "$work/measured.h5" >/dev/null
sh "$source/calibrate/study_difference.sh" "$programs" "$source" "$work/measured.h5" >"$work/out.txt"

grep -q '^weak_scaling:' "$work/out.txt" || fail "no weak scaling"
grep -q '^hardware_generations:' "$work/out.txt" || fail "no hardware generations"
[ "$(grep -c '^h100-sxm5-80gb' "$work/out.txt")" -ge 10 ] || fail "points of the H100 are missing"
grep -Eq '^difference of the step: \+[0-9.]+ % in the mean of [0-9]+ points' "$work/out.txt" ||
  fail "slower products made no slower step"
grep '^a100' "$work/out.txt" | grep -Eq '\+0\.0% +\+0\.0%$' || fail "another GPU's step moved"
