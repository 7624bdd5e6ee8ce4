# GPUs of other makers, cards, and files of one's own: they run, and say what is guessed.
# Usage: hardware.sh FOLDER_OF_PROGRAMS SOURCE_FOLDER
set -u
program=$1/stepcast
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"

for gpu in mi300x mi325x mi355x rtx-pro-6000 b300; do
  expect 0 'tokens/s' run --model llama2-7b --gpu $gpu --nodes 2 --data zero3 --local-batch 1
done
for gpu in mi250x rtx-4090 rtx-5090 a40 l4; do
  expect 0 'tokens/s' run --model llama2-1b --gpu $gpu --nodes 1 --data zero3 --local-batch 1
done
expect 0 'tokens/s' run --model llama2-1b --gpu gb10 --gpus 1 --local-batch 1
expect 0 'announced, not released' run --model llama2-7b --gpu rubin --nodes 1 --data zero2 \
  --local-batch 1
expect 0 "RCCL's own tables are not read" run --model llama2-7b --gpu mi300x --nodes 1 \
  --data zero2 --local-batch 1
expect 0 '^framework  *primus' run --model llama2-7b --gpu mi355x --nodes 2 --data zero1 \
  --local-batch 1 --framework primus --recipe mxfp8
expect 0 'tokens/s' run --model llama2-7b --gpu l40s --nodes 1 --tensor 4 --data zero1 \
  --framework megatron-core --local-batch 1 --recipe fp8_delayed

# What a host's memory carries bounds cards whose peers meet in it.
rate() { "$program" collective all_reduce --gpu rtx-5090 --nodes 1 --bytes 1GiB "$@" --csv - |
  tail -1; }
[ "$(rate)" != "$(rate --set cluster.node.peer_access=true)" ] ||
  { echo "peer_access changes nothing"; failures=$((failures + 1)); }

# A file of one's own: every key explained, what is missing named at once.
expect 0 'to be filled in: .*tensor_peak.*tdp' new gpu my-card --set architecture=hopper \
  --out "$work/my-card.toml"
expect 3 'missing key .architecture.\|missing key .sms.*tensor_peak' run --model llama2-7b \
  --gpu "$work/my-card.toml" --local-batch 1
expect 3 'is there already' new gpu my-card --out "$work/my-card.toml"
expect 0 'is whole' new gpu your-card --like b200-sxm --set memory='288 GB' \
  --out "$work/your-card.toml"
expect 0 'tokens/s' run --model llama2-7b --gpu "$work/your-card.toml" --nodes 2 --data zero2 \
  --local-batch 1
expect 0 'is whole' new node my-node --like dgx-b200 --set gpu=your-card.toml \
  --out "$work/my-node.toml"
expect 0 'your-card' run --model llama2-7b --node "$work/my-node.toml" --nodes 2 --data zero2 \
  --local-batch 1
expect 0 '^ports = 128' new fabric mine --set kind=fat_tree --set ports=128 --out -
expect 0 'is whole' new architecture mine --like hopper --set product_reach=0.4 \
  --out "$work/mine.toml"
sed 's/^architecture = .*/architecture = "mine.toml"/' "$work/your-card.toml" >"$work/third.toml"
sed -i 's/your-card/third/' "$work/third.toml"
expect 0 'tokens/s' run --model llama2-7b --gpu "$work/third.toml" --nodes 1 --data zero2 \
  --local-batch 1
expect 0 'to be filled in: layers, hidden' new model mine --out "$work/model.toml"
expect 3 "no key of a gpu" new gpu other --set wheels=4 --out "$work/other.toml"
expect 3 "the catalogue has a gpu 'l4'" new gpu l4
expect 2 'new wheel' new wheel mine

# On a terminal it asks: again after what a key cannot be, and no more after an empty line.
# terminal ANSWERS PATTERN ARGUMENT...
terminal() {
  answers=$1 pattern=$2
  shift 2
  # shellcheck disable=SC2059
  printf "$answers" | script -qec "$program $*" /dev/null >"$work/terminal"
  grep -q -e "$pattern" "$work/terminal" || { echo "a terminal shows no \"$pattern\":"
    cat "$work/terminal"; failures=$((failures + 1)); }
}
if command -v script >/dev/null; then
  terminal 'moebius\nfat_tree\n' 'asked.toml is whole' new fabric asked --out "$work/asked.toml"
  grep -q "cannot be 'moebius'" "$work/terminal" ||
    { echo "a terminal takes moebius for a fabric"; failures=$((failures + 1)); }
  terminal '\n4096\n' 'to be filled in: layers, heads' new model asked --out "$work/model2.toml"
  terminal 'no-such-gpu\nb200-sxm\n' "unknown gpu 'no-such-gpu'" new node asked \
    --out "$work/node.toml"
  grep -q '^gpu = "b200-sxm"' "$work/node.toml" ||
    { echo "the second answer is not written"; failures=$((failures + 1)); }
  terminal 'no-such-architecture\nhopper\n' "unknown architecture 'no-such-architecture'" \
    new gpu asked --out "$work/gpu.toml"
  terminal '4\n4096\n3\n12\n' '3 heads do not divide' new model asked --out "$work/kept.toml"
  grep -q '^heads = 3' "$work/kept.toml" ||
    { echo "answers that do not go together are lost"; failures=$((failures + 1)); }
  terminal 'x\n' 'whole.toml is whole' new gpu asked --like b200-sxm --out "$work/whole.toml"
else
  echo "what a terminal is asked is not tested: there is no script(1)"
fi
exit $((failures > 0))
