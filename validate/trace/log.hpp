// Step times that frameworks print: Megatron-LM, torchtitan, NeMo, llm-foundry (Composer),
// DeepSpeed, nanotron, verl and transformers' Trainer (Axolotl's too), and the configuration that
// some print before. Knows no scenario.
#pragma once

#include <cstdint>
#include <optional>
#include <streambuf>
#include <string>
#include <vector>

#include "engine/check.hpp"
#include "validate/trace/breakdown.hpp"
#include "validate/trace/records/file.hpp"
#include "validate/trace/settings.hpp"

namespace stepcast::validate {

struct StepLog {
  std::string file, framework;                    // of the steps; none: a configuration alone
  std::vector<double> step_s;                     // printed steps (or means of some), in order
  std::vector<double> tokens_per_second_per_gpu;  // where the framework prints that
  std::vector<double> flops_per_second_per_gpu, mfu;
  std::vector<std::int64_t> numbers;  // of the steps as printed; 0: without
  Settings settings;
  std::optional<Bytes> memory;  // largest allocated
};

/// A text that is neither trace nor log.
InputError no_steps_in(const std::string& path);

/// Streams the lines. Throws InputError with the line for a step that is no number, and for a text
/// without steps or configuration.
StepLog read_log(const std::string& path, std::streambuf& text);

/// The median of the steps behind the first `skip` lines; unless given, a tenth of them, at least
/// one where there are two.
MeasuredStep measure_log(const StepLog& log, std::optional<std::int64_t> skip);

}  // namespace stepcast::validate
