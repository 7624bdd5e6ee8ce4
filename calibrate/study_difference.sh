#!/bin/sh
# The studies that a measured GPU is part of, on the published table alone and with the measured one
# over it, and the difference of the two: for `./dev gpu`.
#   study_difference.sh FOLDER_OF_PROGRAMS SOURCE MEASURED.h5
# Attention stays the kernel that the study names: rows of another kernel do not answer for it.
set -eu
stepcast=$1/stepcast
source=$2
measured=$(cd "$(dirname "$3")" && pwd)/$(basename "$3")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One line a point: GPU, GPUs, step in s, tokens/s per GPU, W per GPU, measured share of kernels.
points() {
  "$stepcast" sweep "$source/scenarios/$1.toml" --json --quiet --set "calibration.tables=$2" |
    awk -F'[:,]' '
      function value(text) { gsub(/[ "]/, "", text); return text }
      /^      "gpu":/ { gpu = value($2) }
      /^      "gpus":/ { gpus = value($2) }
      /^      "step_time_s":/ { step = value($2) }
      /^      "tokens_per_s_per_gpu":/ { tokens = value($2) }
      /^      "power_w_per_gpu":/ { watts = value($2) }
      /"kernels": \{/ { kernels = 1 }
      kernels && /"measured":/ {
        print gpu, gpus, step, tokens, watts, value($2)
        kernels = 0
      }'
}

for study in weak_scaling hardware_generations; do
  points "$study" '["published"]' >"$work/published"
  points "$study" "[\"published\", \"$measured\"]" >"$work/measured"
  [ -s "$work/published" ] || {
    echo "study_difference: $study gave no points" >&2
    exit 1
  }
  echo "$study: the published table | with the measured one | measured over published"
  paste -d' ' "$work/published" "$work/measured" | awk '
    BEGIN {
      printf "%-20s%6s |%9s%9s%7s |%9s%9s%7s%10s |%8s%8s\n", "GPU", "GPUs", "step s", "tok/s",
        "W", "step s", "tok/s", "W", "measured", "step", "tok/s"
    }
    {
      printf "%-20s%6d |%9.4g%9.0f%7.0f |%9.4g%9.0f%7.0f%9.1f%% |%+7.1f%%%+7.1f%%\n", $1, $2, $3,
        $4, $5, $9, $10, $11, 100 * $12, 100 * ($9 / $3 - 1), 100 * ($10 / $4 - 1)
      change = $9 / $3 - 1
      if ($12 > 0) { sum += change; n++ }
    }
    END {
      if (n == 0) print "no point rests on a measured kernel"
      else printf "difference of the step: %+.1f %% in the mean of %d points\n", 100 * sum / n, n
    }'
  echo
done
