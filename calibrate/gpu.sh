#!/bin/sh
# Measures the GPU of this machine in one call, for `./dev gpu`:
#   ./dev gpu [OUT]       builds (or takes what `./dev gpu pack` has packed), runs the tests that
#                         need a GPU, calibrates, and writes OUT/<gpu>_<date>.h5, .csv and .txt;
#                         the report ends with the studies on the published and on this table
#   ./dev gpu validate [OUT]
#                         measured beside simulated: calibrates what the trainer needs, trains a
#                         Llama of 1.1 billion parameters in ten ways (OUT/h100_validation_<date>.md),
#                         and sees whether two ranks on one GPU learn alike under every plan
#   ./dev gpu pack        builds here and packs build/gpu.tar.xz, with the libraries that a machine
#                         without packages lacks; CUDA's own must be there
# STEPCAST_GPU_SECONDS (540) bounds the whole call; what was measured until then is kept.
set -u
cd "$(dirname "$0")/.." || exit 1
started=$(date +%s)
budget=${STEPCAST_GPU_SECONDS:-540}
left() { echo $((started + budget - $(date +%s))); }
say() { printf 'gpu: %s (%d s left)\n' "$*" "$(left)"; }
missing=0
lacks() {
  echo "gpu: missing: $*" >&2
  missing=1
}

[ -d /usr/local/cuda/bin ] && PATH=$PATH:/usr/local/cuda/bin
programs="stepcast stepcast-calibrate stepcast-validate stepcast-trainer stepcast-trainer-cuda
  stepcast-nccl-worker test_hardware"
libraries="libstepcast.so stepcast_hdf5.so"

if command -v ccache >/dev/null 2>&1; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
fi

# One architecture compiles several times faster than all of them: that of the GPU here or, packed for
# another machine, those of A100 and H100.
packed_for="80-real;90-real"
build() {
  command -v nvcc >/dev/null 2>&1 || lacks "nvcc (CUDA toolkit) on PATH"
  command -v cmake >/dev/null 2>&1 || lacks "cmake, 3.25 or later"
  command -v ninja >/dev/null 2>&1 || lacks "ninja"
  [ $missing = 0 ] || return 1
  cmake --preset release -B build/cuda -DSTEPCAST_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES="$1" \
    >build/gpu.log 2>&1 || {
    grep -E -A4 'Could NOT find|CMake Error|not found' build/gpu.log | head -n 20 >&2
    lacks "a package that CMake asks for (above; build/gpu.log)"
    return 1
  }
  # shellcheck disable=SC2086  # a list of targets
  cmake --build build/cuda --target $programs published_table >>build/gpu.log 2>&1 || {
    tail -n 20 build/gpu.log >&2
    echo "gpu: the build failed (build/gpu.log)" >&2
    return 1
  }
}

# The C library's family and CUDA's are the machine's own.
pack() {
  build "$packed_for" || exit 1
  rm -rf build/gpu && mkdir -p build/gpu/lib
  for file in $programs $libraries published.h5 published.columns; do
    cp "build/cuda/$file" build/gpu/ || exit 1
  done
  blas=$(ldconfig -p 2>/dev/null | awk '$1 == "libopenblas.so.0" {print $NF; exit}')
  {
    for program in $programs $libraries; do
      strip "build/gpu/$program"
      ldd "build/cuda/$program"
    done | awk '$3 ~ /^\// {print $3}'
    # Loaded by the first product on the host.
    [ -z "$blas" ] || { echo "$blas" && ldd "$blas" | awk '$3 ~ /^\// {print $3}'; }
  } | sort -u |
    grep -Ev '/(libstepcast|libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s|libcuda|libcublas|libcublasLt|libnccl|libcudnn)[._-]' |
    while read -r library; do cp -L "$library" build/gpu/lib/; done
  XZ_OPT=-T0 tar -C build -cJf build/gpu.tar.xz gpu || exit 1
  ls -l build/gpu.tar.xz
}

if [ "${1:-}" = pack ]; then
  mkdir -p build
  pack
  exit 0
fi

part=calibrate
if [ "${1:-}" = validate ]; then
  part=validate
  shift
fi
out=${1:-build/gpu_results}
mkdir -p "$out" build || exit 1
out=$(cd "$out" && pwd)
command -v nvidia-smi >/dev/null 2>&1 ||
  echo "gpu: warning: no nvidia-smi, compiling for all architectures" >&2
ls /dev/nvidia[0-9]* >/dev/null 2>&1 || lacks "a GPU: no /dev/nvidia0"
[ $missing = 0 ] || exit 77

folder=build/cuda
if [ -f build/gpu.tar.xz ]; then
  say "taking what was packed on $(date -r build/gpu.tar.xz "+%F %H:%M")"
  tar -C build -xJf build/gpu.tar.xz || exit 1
  folder=build/gpu
else
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .)
  say "building${capability:+ for sm_$capability}"
  build "${capability:-80;90}${capability:+-real}" || exit 1
fi

# CUDA's libraries: where ld.so looks, beside nvcc, or in Python's wheels.
library_path=$PWD/$folder:$PWD/$folder/lib:/usr/local/cuda/lib64
if command -v python3 >/dev/null 2>&1; then
  wheels=$(python3 -c 'import glob, sysconfig
print(":".join(glob.glob(sysconfig.get_paths()["purelib"] + "/nvidia/*/lib")))' 2>/dev/null)
  library_path=$library_path${wheels:+:$wheels}
fi
LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$library_path
STEPCAST_DATA=$PWD/scenarios
export LD_LIBRARY_PATH STEPCAST_DATA
for program in $programs; do
  for library in $(ldd "$folder/$program" 2>&1 | awk '/not found/ {print $1}'); do
    lacks "$library, which $program needs"
  done
done
# Loaded by the first call of it (calibrate/cuda/cublaslt_on_demand.cpp), so that ldd names it not.
printf '%s' "$LD_LIBRARY_PATH" | tr ':' '\n' | while read -r place; do ls "$place"/libcublasLt.so.*; done \
  2>/dev/null | grep -q . || ldconfig -p 2>/dev/null | grep -q 'libcublasLt\.so\.' || lacks libcublasLt
[ $missing = 0 ] || exit 1

failed=0

# Two ranks on this GPU, plan by plan, against one rank on the same data. bf16 keeps 8 bits: losses
# agree to a hundredth.
learn_alike() {
  one=
  for plan in cluster.gpus=1 plan.data=ddp plan.data=zero2 plan.data=zero3,plan.recompute=full \
    plan.tensor=2 plan.tensor=2,plan.sequence_parallel=true \
    plan.pipeline=2,plan.schedule=1f1b,batch.micro_batch=2 \
    plan.pipeline=2,plan.schedule=gpipe,batch.micro_batch=2; do
    # shellcheck disable=SC2046  # one word a setting
    timeout 60 "$folder/stepcast-trainer" scenarios/gpu_ranks.toml --gpus 1 --steps 20 --quiet \
      $(echo ",$plan" | sed 's/,/ --set /g') >"$out/ranks.txt" 2>"$out/ranks.log"
    code=$?
    if [ $code != 0 ]; then
      echo "$plan: FAILED, exit code $code: $(tail -n 1 "$out/ranks.log")"
      continue
    fi
    loss=$(awk '/^loss/ {print $(NF - 3)}' "$out/ranks.txt")
    one=${one:-$loss}
    awk -v a="$loss" -v b="$one" -v plan="$plan" 'BEGIN {
      far = a > 1.01 * b || a < 0.99 * b
      printf "%-60s loss %s after 20 steps, one rank %s%s\n", plan, a, b, far ? ": FAILED" : "" }'
  done
}

if [ $part = validate ]; then
  ranks=$out/ranks_$(date +%F).txt
  echo "Two ranks of the trainer on one GPU, over NCCL" >"$ranks"
  learn_alike >>"$ranks"
  cat "$ranks"
  if grep -q FAILED "$ranks"; then failed=1; fi
  say "measured beside simulated"
  timeout --signal=INT --kill-after=20 "$(($(left) - 20))" \
    "$folder/stepcast-validate" run scenarios/h100_validation.toml --quick \
    --table "$out/validation.h5" --out "$out/points" --report "$out" 2>"$out/validate.log" |
    tee "$out/validate.txt"
  ls "$out"/*_validation_*.md >/dev/null 2>&1 || {
    tail -n 5 "$out/validate.log" >&2
    failed=1
  }
  say "written: $out"
  exit $failed
fi

say "tests that need a GPU"
timeout 120 "$folder/test_hardware" >"$out/hardware_tests.txt" 2>&1 || failed=1
tail -n 3 "$out/hardware_tests.txt"

day=$(date +%F)
draft=$out/measured.h5
say "calibrating"
timeout --signal=INT --kill-after=20 "$(($(left) - 60))" \
  "$folder/stepcast-calibrate" run --device cuda --out "$draft" >"$out/run.txt" 2>"$out/progress.txt"
code=$?
case $code in
  0) ;;
  124 | 130) say "time is up: what was measured is kept" ;;
  *)
    failed=1
    tail -n 5 "$out/progress.txt" >&2
    ;;
esac
[ -f "$draft" ] || {
  echo "gpu: nothing was measured, see $out/progress.txt" >&2
  exit 1
}
"$folder/stepcast-calibrate" export --csv "$draft" >"$out/measured.csv" || failed=1
gpu=$(awk -F, 'NR == 2 {print tolower($1)}' "$out/measured.csv" | tr '-' '_')
name=${gpu:-gpu}_$day
mv "$draft" "$out/$name.h5"
mv "$out/measured.csv" "$out/$name.csv"

{
  echo "$name, by ./dev gpu"
  "$folder/stepcast-calibrate" report "$out/$name.h5"
  echo
  cat "$out/run.txt"
  echo
  sh calibrate/study_difference.sh "$folder" "$PWD" "$out/$name.h5" 2>&1 || failed=1
  echo
  echo "NCCL, two ranks on one GPU over loopback sockets: that it works, no measure of a network"
  timeout "$(($(left) > 20 ? $(left) - 5 : 15))" "$folder/stepcast-nccl-worker" table 2 2>&1
  echo
  nvidia-smi 2>/dev/null
} >"$out/$name.txt" || failed=1
cat "$out/$name.txt"
say "written: $out/$name.h5, .csv, .txt"
exit $failed
