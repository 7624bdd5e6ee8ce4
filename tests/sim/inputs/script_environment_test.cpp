// What a script exports for NCCL and the allocator.
#include <catch2/catch.hpp>

#include "tests/sim/inputs/read_inputs.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;

TEST_CASE("a script's environment says what NCCL and the allocator do") {
  const NamedText file{
      "run.sh",
      "#!/bin/bash\nexport NCCL_PROTO=Simple\nexport NCCL_DEBUG=INFO\nexport NCCL_NO_SUCH=1\n"
      "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n"
      "NCCL_ALGO=Ring torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 512 "
      "--num-attention-heads 8 --seq-length 512 --micro-batch-size 1 --global-batch-size 8\n"};
  const auto input = read_launch_files({&file, 1}, catalogue());
  REQUIRE(input);
  const auto text = [&](const char* key) { return *input->facts.find(key)->text(); };
  CHECK(text("nccl.NCCL_PROTO") == "Simple");
  CHECK(text("nccl.NCCL_ALGO") == "Ring");
  CHECK(input->facts.find("nccl.NCCL_DEBUG") == nullptr);
  CHECK(input->facts.find("software.expandable_segments") != nullptr);
  CHECK(input->understanding.unknown == std::vector<std::string>{});
  CHECK(std::ranges::count(input->facts.notes,
                           "NCCL_NO_SUCH is no variable of NCCL that is known here.") == 1);
}

namespace {

const std::string trains =
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 512 "
    "--num-attention-heads 8 --seq-length 512 --micro-batch-size 1 --global-batch-size 8 ";

LaunchInput input_beside(const std::string& before, const std::string& more = "") {
  return input_of("#!/bin/bash\n" + before + "\n" + trains + more + "\n", "run.sh");
}

}  // namespace

TEST_CASE("a value that NCCL or the allocator does not know is refused at its line") {
  for (const auto& [line, words] :
       {std::pair{"export NCCL_PROTO=Simpl", "run.sh:2: "},
        {"export NCCL_ALGO=Rnig", "run.sh:2: "},
        {"export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:yes", "neither True nor False"}})
    CHECK_THROWS_WITH(input_beside(line), Contains(words));
  const LaunchInput input = input_beside(
      "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False,max_split_size_mb:128");
  CHECK(text_of(input.facts, "software.expandable_segments") == "false");
  CHECK(says(input.facts.notes, "max_split_size_mb:128 bears on memory"));
}

TEST_CASE("a script's environment says what its hosts wait for") {
  const LaunchInput input =
      input_beside("export CUDA_LAUNCH_BLOCKING=1\nexport TORCH_DISTRIBUTED_DEBUG=DETAIL");
  CHECK(text_of(input.facts, "software.launch_blocking") == "true");
  CHECK(text_of(input.facts, "software.collective_checks") == "true");
  CHECK(says(input.facts.notes,
             "TORCH_DISTRIBUTED_DEBUG=DETAIL: the hosts of a group meet before each collective"));
  const LaunchInput other =
      input_beside("export CUDA_LAUNCH_BLOCKING=0\nexport TORCH_DISTRIBUTED_DEBUG=INFO");
  CHECK(other.facts.find("software.launch_blocking") == nullptr);
  CHECK(other.facts.find("software.collective_checks") == nullptr);
}

TEST_CASE("arguments that $(cat own.args) would take apart are named, quotes are not") {
  const LaunchInput input =
      input_beside("",
                   "--lr 1e-4 --wandb-exp-name 'my run' --data-cache '*.bin' --extra '{\"a\":1}' "
                   "--data-path 0.5 a 0.5 b --save $OUT");
  const auto has = [](const std::vector<std::string>& all, const char* one) {
    return std::ranges::count(all, one) == 1;
  };
  CHECK(has(input.own_arguments, "--lr 1e-4"));
  CHECK(has(input.own_arguments, "--data-path 0.5 a 0.5 b"));
  CHECK(has(input.own_arguments, "--extra {\"a\":1}"));
  CHECK(has(input.cut_arguments, "--wandb-exp-name my run"));
  CHECK(has(input.cut_arguments, "--data-cache *.bin"));
  CHECK(has(input.open_arguments, "--save $OUT"));
}

TEST_CASE("lines of TRL's YAML are kept as they stand") {
  const LaunchInput input = input_of(
      "model_name_or_path: Qwen/Qwen3-8B\nmax_length: 4096\n# a remark\n"
      "run_name: \"[x\"\nhub_model_id: \"null\"\noutput_dir: $HOME/out\n"
      "model_init_kwargs:\n  trust_remote_code: true\ndataset_name: \"yes\"\n"
      "per_device_train_batch_size: 2\n",
      "sft.yaml");
  using Lines = std::vector<std::string>;
  CHECK(input.own_lines == Lines{"model_name_or_path: Qwen/Qwen3-8B", "run_name: \"[x\"",
                                 "hub_model_id: \"null\"", "output_dir: $HOME/out",
                                 "model_init_kwargs:\n  trust_remote_code: true",
                                 "dataset_name: \"yes\""});
}
