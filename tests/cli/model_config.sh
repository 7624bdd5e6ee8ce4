#!/bin/sh
# A model from its config.json: a forecast, an entry of the catalogue, refusals by name.
#   model_config.sh FOLDER_OF_PROGRAMS SOURCE
set -u
program=$1/stepcast
. "$2/tests/cli/shared/expect.sh"

mkdir "$work/Tiny-Qwen"
config=$work/Tiny-Qwen/config.json
cat >"$config" <<END
{"model_type": "qwen2", "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 8,
 "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 32000, "hidden_act": "silu",
 "tie_word_embeddings": true, "use_sliding_window": false, "sliding_window": 4096}
END
on_one_node="--sequence 2048 --gpu h100 --nodes 1 --global-batch 16 --data zero2"

expect 0 '^model *Tiny-Qwen' run --model "$config" $on_one_node
expect 0 '^qkv_biases = true' import-model "$config"
expect 0 '^kv_heads = 4' import-model "$config"
expect 0 '' import-model "$config" --out "$work/tiny.toml"

# The entry is the same model: the same step to the picosecond.
step() {
  "$program" run --model "$1" $on_one_node --json | grep '"step_time_s"'
}
if [ "$(step "$config")" != "$(step "$work/tiny.toml")" ]; then
  echo "config.json: $(step "$config"), its entry: $(step "$work/tiny.toml")"
  failures=$((failures + 1))
fi

sed 's/"qwen2"/"qwen2", "num_experts": 60/' "$config" >"$work/moe.json"
expect 3 "moe.json: a mixture of experts ('num_experts') is not modelled" \
  run --model "$work/moe.json" $on_one_node
# Models of experts: sizes by part, of all and of a token.
experts='"qwen3_moe", "num_experts": 16, "num_experts_per_tok": 2, "moe_intermediate_size": 512'
sed "s/\"qwen2\"/$experts/" "$config" >"$work/experts.json"
expect 0 '^experts_per_token = 2' import-model "$work/experts.json"
expect 0 '^experts  *201,326,592  *25,165,824$' show models "$work/experts.json"
expect 0 '^total  *682,636,487,424  *38,240,398,080$' show models deepseek-v3
expect 0 '261 (attention to the keys before alone' show models deepseek-v3
sed 's/qwen2/jamba/' "$config" >"$work/jamba.json"
expect 3 "'jamba' are not modelled: they have layers of Mamba-1.*nearest that is: nvidia/" \
  import-model "$work/jamba.json"

sed 's/qwen2/mamba/' "$config" >"$work/mamba.json"
expect 3 "mamba.json: models of type 'mamba' are not modelled" import-model "$work/mamba.json"
expect 3 "missing.json: cannot be opened" run --model "$work/missing.json" $on_one_node
expect 3 "is no gpu, a gpu is a TOML file" run --model "$config" $on_one_node \
  --set "cluster.node.gpu=\"$config\""
expect 2 "is no config.json" import-model "$work/tiny.toml"
exit $((failures > 0))
