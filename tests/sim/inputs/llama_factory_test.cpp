// LLaMA-Factory's two generations of YAML: what its words make of a run, and files that make none.
#include "engine/check.hpp"
#include "tests/sim/inputs/read_inputs.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;

namespace {

const std::string v1 = "model: Qwen/Qwen3-8B\nmodel_class: llm\ncutoff_len: 4096\n";
const std::string first =
    "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\ndo_train: true\ndataset: mine\nbf16: true\n"
    "template: qwen3\ncutoff_len: 4096\nper_device_train_batch_size: 2\n";

std::string refusal_of(const std::string& text) {
  try {
    input_of(text, "a.yaml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE(
    "the second generation shards by FSDP2, in bf16 over fp32, recomputes and packs nothing") {
  const LaunchInput input = input_of(v1 + "micro_batch_size: 2\ndist_config:\n  name: fsdp2\n");
  CHECK(input.format == "the v1 YAML of LLaMA-Factory");
  CHECK(input.understanding.unknown == std::vector<std::string>{});
  for (const auto& [key, value] : {std::pair{"plan.data", "\"zero3\""},
                                   {"plan.recompute", "\"full\""},
                                   {"precision.compute", "\"bf16\""},
                                   {"precision.gradient_reduce", "\"fp32\""},
                                   {"batch.micro_batch", "2"},
                                   {"model.sequence", "4096"}})
    CHECK(text_of(input.facts, key) == value);
  const Scenario s = scenario_of(input, 2);
  CHECK(s.global_batch == 32);  // no global batch: one turn of every rank
  CHECK(s.precision.masters);
  CHECK(scenario_of(input_of(v1 + "dist_config:\n  name: fsdp2\n  offload_params: true\n"), 2)
            .plan.offload.optimizer == 1.0);
  const Scenario kept = scenario_of(
      input_of(v1 + "micro_batch_size: 1\nglobal_batch_size: 64\ncp_size: 2\nmp_replicate_size: 2\n"
                    "enable_activation_checkpointing: false\ndist_config:\n  name: fsdp2\n"
                    "  reshard_after_forward: false\n"),
      2);
  CHECK(kept.plan.data == workloads::DataParallel::zero2);
  CHECK(kept.plan.recompute == workloads::Recompute::none);
  CHECK(kept.plan.context == 2);
  CHECK(kept.plan.shards() == 8);
  CHECK(kept.batch.micro_batches == 8);
  CHECK(kept.software.attention.exchange == workloads::ContextExchange::all_to_all);
}

TEST_CASE("without dist_config the second generation's DDP casts nothing") {
  const LaunchInput full = input_of(v1 + "bf16: true\n");
  CHECK(text_of(full.facts, "plan.data") == "\"ddp\"");
  CHECK(text_of(full.facts, "precision.compute") == "\"fp32\"");
  CHECK(says(full.facts.notes, "weights and products are in fp32"));
  CHECK(says(full.facts.notes, "every GPU holds all of them"));
  const LaunchInput adapters = input_of(v1 + "peft_config:\n  name: lora\n");
  CHECK(text_of(adapters.facts, "precision.compute") == "\"bf16\"");
  CHECK(text_of(adapters.facts, "model.lora_rank") == "8");
  CHECK(text_of(adapters.facts, "model.lora_dropout") == "true");  // 0.05 where nothing is said
}

TEST_CASE("the second generation's DeepSpeed computes as its configuration says") {
  const auto compute = [](const std::string& json) {
    const NamedText files[] = {
        {"a.yaml", v1 + "dist_config:\n  name: deepspeed\n  config_file: ds.json\n"},
        {"ds.json", "{\"zero_optimization\": {\"stage\": 2}" + json + "}"}};
    const LaunchInput input = *read_launch_files(files, catalogue());
    CHECK(text_of(input.facts, "plan.data") == "\"zero2\"");
    CHECK(text_of(input.facts, "precision.gradient_reduce") ==
          text_of(input.facts, "precision.compute"));
    return text_of(input.facts, "precision.compute");
  };
  CHECK(compute("") == "\"bf16\"");
  CHECK(compute(R"(, "bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"})") == "\"bf16\"");
  CHECK(compute(R"(, "bf16": {"enabled": false})") == "\"fp32\"");
  CHECK(compute(R"(, "bf16": {"enabled": "auto"}, "fp16": {"enabled": false})") == "\"fp32\"");
}

TEST_CASE("fsdpturbo keeps weights in bf16 and experts on ranks of their own") {
  const Scenario s = scenario_of(
      input_of("model: Qwen/Qwen3-30B-A3B\ncutoff_len: 1024\nbf16: true\nmicro_batch_size: 1\n"
               "dist_config:\n  name: fsdpturbo\n  ep_size: 8\n  ep_dispatcher: eager\n"),
      2);
  CHECK(s.plan.expert.degree == 8);
  CHECK_FALSE(s.precision.masters);
  CHECK(s.precision.gradient_reduce == workloads::Dtype::fp32);
}

TEST_CASE("kinds of training that no key has are named, oft stands for adapters of its size") {
  const LaunchInput frozen = input_of(v1 + "peft_config:\n  name: freeze\n");
  CHECK(says(frozen.facts.notes, "freeze has no key here: all parameters are taken as trained"));
  CHECK(frozen.facts.find("model.lora_rank") == nullptr);
  const LaunchInput oft = input_of(first + "finetuning_type: oft\noft_block_size: 64\n");
  CHECK(text_of(oft.facts, "model.lora_rank") == "16");
  CHECK(says(oft.facts.notes, "oft is taken as adapters of rank 16"));
  CHECK_FALSE(says(oft.facts.notes, "stage = "));
  std::string pairs = first + "finetuning_type: lora\n";
  pairs.replace(pairs.find("sft"), 3, "dpo");
  CHECK(says(input_of(pairs).facts.notes,
             "stage = dpo: pairs of answers, samples and second models"));
}

TEST_CASE("frozen weights of few bits are those that are said, or that the model's name says") {
  const auto base = [](const std::string& more) {
    return text_of(input_of(more).facts, "model.lora_base");
  };
  const std::string lora = v1 + "peft_config:\n  name: lora\n";
  CHECK(base(lora) == "");
  CHECK(base(lora + "quant_config:\n  name: bnb\n") == "\"nf4_double\"");
  CHECK(base(lora + "quant_config:\n  name: bnb\n  double_quantization: false\n") == "\"nf4\"");
  CHECK(base(lora + "quant_config:\n  name: auto\n  quantization_bit: 8\n") == "\"int8\"");
  CHECK(base("model_name_or_path: somebody/Llama-3-8B-AWQ\nfinetuning_type: lora\n") == "\"nf4\"");
}

TEST_CASE("files for export, inference and answers make no step, nor do experts on the CPU") {
  const std::string model = "model_name_or_path: Qwen/Qwen3-8B\ntemplate: qwen3\n";
  CHECK_THAT(refusal_of(model + "export_dir: merged\n"),
             Contains("a file for export (export_dir)"));
  CHECK_THAT(refusal_of(model + "infer_backend: huggingface\n"), Contains("for inference"));
  CHECK_THAT(refusal_of("model: Qwen/Qwen3-8B\npeft_config:\n  name: lora\n  export_dir: merged\n"),
             Contains("a file for export (peft_config.export_dir)"));
  CHECK_THAT(refusal_of(model + "do_predict: true\n"), Contains("for answers"));
  CHECK_THAT(refusal_of(first + "use_kt: true\n"), Contains("computed by the CPU"));
  CHECK(refusal_of(first + "use_kt: false\ndo_predict: true\nexport_dir: beside\n") == "");
}
