# The pictures that the pages of docs/ show, by the commands that the pages name.

# pictures PROGRAM SOURCE FOLDER: drawn anew there.
pictures() {
  "$1" report --model llama2-70b --gpu h100 --nodes 32 --framework megatron-core --data zero1 \
    --tensor 8 --pipeline 4 --global-batch 512 --micro-batch 1 --tokens 2T \
    --out "$3/step.html" --svg "$3" >"$3/said" 2>&1 &&
    "$1" design "$2/scenarios/design/llama3-70b-2t.toml" --quiet --svg "$3/design" >"$3/said" 2>&1 &&
    "$1" sweep "$2/scenarios/power_caps.toml" --quiet --svg "$3/caps" >"$3/said" 2>&1 &&
    mv "$3/design/days_dollars.svg" "$3" && mv "$3/caps/over_key.svg" "$3/power_caps.svg"
}
