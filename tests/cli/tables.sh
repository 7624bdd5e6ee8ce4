#!/bin/sh
# Every row family comes back through the programs: CSV and logs in, merged, CSV out, and in again.
# Usage: tables.sh FOLDER_OF_PROGRAMS SOURCE_FOLDER
set -u
program=$1/stepcast-calibrate
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"

differ() {
  diff "$1" "$2" || {
    echo "$3"
    failures=$((failures + 1))
  }
}

head=gpu,kind,shape,dtype,value,unit,source,url_or_repo_path,confidence
cat >"$work/few.csv" <<CSV
$head
X,launch,kernel,n/a,2.5,us,s,r,high
X,power,idle,n/a,70,W,s,r,high
X,gemm,m=8;n=16;k=32,bf16,1,TFLOP/s,s,r,high
CSV
expect 0 '' import "$work/few.csv" --out "$work/few.h5"
expect 0 '^all  *1  *1  *1$' show "$work/few.h5"

times=kernel_alone,kernel_beside,collective_alone,collective_beside
cat >"$work/all.csv" <<CSV
$head,ranks,nodes,min_bytes_moved,kernel,collective,$times
X,gemm,m=8;n=16;k=32;opA=N;opB=T,bf16,1.1,TFLOP/s,s,r,high,,,,,,,,,
X,attention_fwd,b=1;h=8;s=64;d=64;causal=1,bf16,1.3,TFLOP/s,s,r,high,,,,,,,,,
X,rmsnorm,tokens=64;model=m;tp=1,bf16,7.7,us,s,r,medium,,,4096,,,,,,
X,allreduce,1048576,fp32,33.3,us,"s, quoted",r,high,8,1,,,,,,,
X,copy,hbm (read+write),n/a,2900,GB/s,s,r,low,1,,,,,,,,
X,launch,kernel,n/a,2.5,us,s,r,high,,,,,,,,,
X,overlap,1048576,n/a,26,us,s,r,high,8,1,,gemm,allreduce,20,26,40,50
X,power,idle,n/a,70.5,W,s,r,high,,,,,,,,,
CSV
expect 0 '' import "$work/all.csv" --out "$work/csv.h5"
expect 0 '19 figures' import "$2/tests/calibrate/fixtures/nccl-2.20-2x8.log" --gpu h100 \
  --out "$work/log.h5"
expect 0 '' merge "$work/csv.h5" "$work/log.h5" --out "$work/all.h5" --title t
"$program" show "$work/all.h5" >"$work/shown"
expect 0 '^all  *1  *1  *1  *1  *1  *19  *5  *1  *1  *1$' show "$work/all.h5"

"$program" export --csv "$work/all.h5" >"$work/out.csv"
expect 0 '' import "$work/out.csv" --out "$work/again.h5" --title t
"$program" show "$work/again.h5" >"$work/shown_again"
differ "$work/shown" "$work/shown_again" "an exported table shows otherwise"
"$program" export --csv "$work/again.h5" | diff "$work/out.csv" - || failures=$((failures + 1))
"$program" diff "$work/all.h5" "$work/again.h5" >"$work/diff"
[ "$(grep -c ' 0  *0 ' "$work/diff")" = 10 ] || {
  echo "not every family is the same in both:"
  cat "$work/diff"
  failures=$((failures + 1))
}

# What a cell cannot be, in either form, is told with its file and line.
sed 's/70.5/seventy/' "$work/all.csv" >"$work/bad.csv"
expect 3 'bad.csv:9: value "seventy" is not a positive number' \
  import "$work/bad.csv" --out "$work/bad.h5"
sed 's/70.5/seventy/' "$work/out.csv" >"$work/bad.csv"
expect 3 'bad.csv:33: power "seventy" is not a number' import "$work/bad.csv" --out "$work/bad.h5"
exit $((failures > 0))
