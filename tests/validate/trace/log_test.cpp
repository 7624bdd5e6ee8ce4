#include "validate/trace/log.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "tests/validate/trace_writer.hpp"

using namespace stepcast;
using namespace stepcast::validate;
using Catch::Matchers::Contains;

namespace {

StepLog read(const std::string& text) {
  const TemporaryFile at(text, "run.log");
  TraceFile file(at.path());
  return read_log(at.path(), file);
}

std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "read";
}

std::string megatron(int iteration, const std::string& ms) {
  return " [2025-03-01 10:00:00] iteration " + std::to_string(iteration) +
         "/ 500 | consumed samples: 2048 | elapsed time per iteration (ms): " + ms +
         " | throughput per GPU (TFLOP/s/GPU): 420.1 | learning rate: 1.0E-05 | global batch size: "
         "  256 | lm loss: 7.1E+00 |\n";
}

}  // namespace

TEST_CASE("Megatron-LM: times in ms, the global batch, the most memory of any rank") {
  const StepLog log = read("building GPT model ...\n" + megatron(1, "9000.5") +
                           "[Rank 3] (after 1 iterations) memory (MB) | allocated: 100.0 | max "
                           "allocated: 2048.0 | reserved: 4096.0 | max reserved: 4096.0\n"
                           "[Rank 0] (after 1 iterations) memory (MB) | allocated: 100.0 | max "
                           "allocated: 1024.5 | reserved: 4096.0 | max reserved: 4096.0\n" +
                           megatron(2, "1250.0") + megatron(3, "1150.0") + megatron(4, "1200.0"));
  CHECK(log.framework == "Megatron-LM");
  CHECK(log.step_s.size() == 4);
  CHECK(log.settings.integer("global_batch_size") == 256);
  CHECK(log.memory == Bytes(std::int64_t{2} << 30));
  const MeasuredStep step = measure_log(log, {});  // without the first: the median of three
  CHECK(*step.mean.flops_per_second_per_gpu == Approx(420.1e12));
  CHECK(step.mean.step == 1200_ms);
  CHECK(measure_log(log, 2).mean.step == 1175_ms);
  CHECK_THROWS_WITH(measure_log(log, 4), Contains("shows 4 steps"));
}

TEST_CASE("a batch that no integer holds is none") {
  std::string beyond = megatron(2, "9000.5");
  beyond.replace(beyond.find("  256"), 5, "6.7e34");
  CHECK(read(megatron(1, "9000.5") + beyond).settings.integer("global_batch_size") == 256);
}

TEST_CASE("torchtitan: tokens per second and GPU, colours and thousands aside") {
  const StepLog log = read(
      "[rank0]:2025-03-01 10:00:00,000 - root - INFO - \x1b[31mstep:  1  \x1b[32mloss: 12.2  "
      "\x1b[33mmemory: 40.50GiB(42.1%)  \x1b[34mtps: 1,111\x1b[39m\n"
      "[rank0]:\x1b[31mstep: 10  \x1b[32mloss:  7.2  \x1b[33mmemory: 41.00GiB(42.1%)  \x1b[34mtps: "
      "6,667  \x1b[36mtflops: 300.10  \x1b[35mmfu: 33.3%\x1b[39m\n");
  CHECK(log.framework == "torchtitan");
  CHECK(log.tokens_per_second_per_gpu == std::vector<double>{1111, 6667});
  CHECK(log.memory == Bytes(std::int64_t{41} << 30));
  const MeasuredStep step = measure_log(log, {});
  CHECK(step.mean.tokens_per_second_per_gpu == 6667.0);
  CHECK_FALSE(step.mean.step);
  CHECK(*step.mean.flops_per_second_per_gpu == Approx(300.1e12));
  CHECK(*step.mean.mfu == Approx(0.333));
}

TEST_CASE("NeMo's progress bar, llm-foundry and DeepSpeed") {
  const StepLog nemo = read(
      "Epoch 0:  1%| 1/100 [v_num=1, train_step_timing in s=9.5]\rEpoch 0:  2%| 2/100 [v_num=1, "
      "train_step_timing in s=2.25]\r\n");
  CHECK(nemo.step_s == std::vector<double>{9.5, 2.25});
  const StepLog foundry = read(
      "[batch=2/20]:\n\t Train throughput/batches_per_sec: 0.2500\n\t Train "
      "throughput/device/tokens_per_sec: 1234.5\n");
  CHECK(foundry.step_s == std::vector<double>{4.0});
  CHECK(foundry.tokens_per_second_per_gpu == std::vector<double>{1234.5});
  const StepLog deepspeed = read("steps: 10 loss: 1.5 iter time (s): 0.750 samples/sec: 42.6\n");
  CHECK(deepspeed.step_s == std::vector<double>{0.75});
}

TEST_CASE("BigScience's Megatron-DeepSpeed: seconds, behind srun's and torchrun's labels") {
  const StepLog log = read(
      "63: [default7]: iteration       10/  159576 | consumed samples:  160 | elapsed time per "
      "iteration (s): 29.47 | global batch size:    16 | samples per second: 0.543 | TFLOPs: "
      "104.40 "
      "|\n63: [default7]: iteration       11/  159576 | consumed samples:  176 | elapsed time per "
      "iteration (s): 4.50 | global batch size:    16 | samples per second: 3.5 | TFLOPs: 105.40 "
      "|\n"
      "63: [default7]:[2022-01-01 00:00:00,000] [INFO] [config.py:1063:print]   world_size "
      "................... 8\n"
      " 0:   world_size ...................................... 64\n"
      " 0:   checkpoint_activations .......................... True\n"
      " 0: [2022-01-01 00:00:00,000] [INFO] [config.py:1063:print]   world_size ............... "
      "8\n");
  CHECK(log.framework == "Megatron-LM");
  CHECK(log.step_s == std::vector<double>{29.47, 4.5});
  CHECK(log.numbers == std::vector<std::int64_t>{10, 11});
  CHECK(log.flops_per_second_per_gpu.back() == Approx(105.4e12));
  CHECK(log.settings.integer("world_size") == 64);
  CHECK(log.settings.integer("deepspeed.world_size") == 8);
  CHECK(log.settings.flag("checkpoint_activations") == true);
}

TEST_CASE("DLLogger's lines of JSON, with a bare NaN beside the time") {
  const StepLog log = read(
      "DLLL {\"timestamp\": \"17\", \"type\": \"LOG\", \"step\": 10, \"data\": "
      "{\"reduced_train_loss\": NaN, \"train_step_timing in s\": 1.25}}\n"
      "DLLL {\"timestamp\": \"18\", \"type\": \"LOG\", \"step\": 20, \"data\": "
      "{\"train_step_timing in s\": 1.5, \"global_batch_size\": 128}}\n");
  CHECK(log.framework == "NeMo");
  CHECK(log.step_s == std::vector<double>{1.25, 1.5});
}

TEST_CASE("transformers' Trainer: its progress bar, else the last line") {
  const StepLog bars = read(
      "Loading checkpoint shards: 100%|####| 4/4 [00:08<00:00,  2.11s/it]\n"
      "  1%|#         | 1/100 [00:09<15:00,  9.10s/it]\r  2%|#         | 2/100 [00:12<10:00,  "
      "3.00s/it]\r  2%|#         | 2/100 [00:12<10:00,  3.00s/it]{'loss': 1.5, 'epoch': 0.1}\n"
      " 30%|###       | 30/100 [00:19<00:30,  2.00it/s]\n");
  CHECK(bars.framework == "Hugging Face Trainer");
  CHECK(bars.step_s == std::vector<double>{9.1, 3, 0.5});
  CHECK(bars.numbers == std::vector<std::int64_t>{1, 2, 30});
  const StepLog end = read("{'train_runtime': 400.0, 'train_steps_per_second': 0.25}\n");
  CHECK(end.step_s == std::vector<double>{4});
}

TEST_CASE("a pasted text: a configuration between its fences") {
  const StepLog log = read("slow!\n```\n" + megatron(1, "100") + megatron(2, "100") +
                           "```\n```json\n{\"train_micro_batch_size_per_gpu\": 2, \"clip\": "
                           "Infinity}\n```\n");
  CHECK(log.step_s.size() == 2);
  CHECK(log.settings.integer("train_micro_batch_size_per_gpu") == 2);
}

TEST_CASE("NeMo 2: the batch in each step's line, tokens where it prints them") {
  const auto line = [](int iteration, const std::string& rest) {
    return "Training epoch 0, iteration " + std::to_string(iteration) +
           "/99 | lr: 1.5e-05 | global_batch_size: 128 | global_step: 9 | reduced_train_loss: 6.2 "
           "| "
           "train_step_timing in s: 12.2" +
           rest + " | consumed_samples: 12544\n";
  };
  const StepLog log = read(line(0, "") + line(1, " | tokens_per_sec_per_gpu: 1.073e+04"));
  CHECK(log.step_s == std::vector<double>{12.2, 12.2});
  CHECK(log.settings.integer("model.global_batch_size") == 128);
  CHECK(log.tokens_per_second_per_gpu == std::vector<double>{10730});
}

TEST_CASE("a configuration alone is a log without steps") {
  const StepLog log = read("[training]\nseq_len = 8192\n");
  CHECK(log.framework.empty());
  CHECK(log.settings.integer("training.seq_len") == 8192);
}

TEST_CASE("steps that are no times, and texts without steps, are refused with their line") {
  CHECK_THAT(refusal("\n" + megatron(1, "nan")), Contains("run.log:2") && Contains("'nan"));
  CHECK_THAT(refusal(megatron(1, "-5")), Contains("run.log:1"));
  CHECK_THAT(refusal(megatron(1, "0.0")), Contains("run.log:1"));
  CHECK_THAT(refusal(megatron(1, "")), Contains("run.log:1"));
  CHECK_THAT(refusal(megatron(1, "5") + "step: 1 loss: 2 tps: 5\n"), Contains("run.log:2"));
  CHECK_THAT(refusal("gpu,kind\n1,2\n"), Contains("no step of a known framework"));
  CHECK_THAT(refusal(std::string(3 << 20, '\xff')), Contains("no step of a known framework"));
}
