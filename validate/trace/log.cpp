#include "validate/trace/log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <map>
#include <string_view>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "validate/compare/score.hpp"
#include "validate/trace/records/numbers.hpp"

namespace stepcast::validate {
namespace {

/// How a framework prints its steps: a line with `mark` holds the number behind `word`.
struct Format {
  std::string_view framework, mark, word;
  enum class Meaning : std::uint8_t { milliseconds, seconds, steps_per_second, tokens } meaning;
};

constexpr std::string_view hugging_face = "Hugging Face Trainer", verl = "verl";

// Megatron-LM training.py training_log, of Megatron-DeepSpeed in seconds; torchtitan metrics.py
// ("wps" until 2024); NeMo's progress bar (TimingCallback) and DLLogger's lines of JSON; Composer's
// SpeedMonitor; DeepSpeed PipelineEngine; nanotron's log_human_readable; verl's console logger, of
// whose step the update of the policy counts; transformers' Trainer.
constexpr Format formats[] = {
    {"Megatron-LM", "iteration", "elapsed time per iteration (ms)", Format::Meaning::milliseconds},
    {"Megatron-LM", "iteration", "elapsed time per iteration (s)", Format::Meaning::seconds},
    {"nanotron", "iteration:", "elapsed_time_per_iteration_ms:", Format::Meaning::milliseconds},
    {verl, "step:", "timing_s/update_actor:", Format::Meaning::seconds},
    {"torchtitan", "step:", "tps:", Format::Meaning::tokens},
    {"torchtitan", "step:", "wps:", Format::Meaning::tokens},
    {"NeMo", "train_step_timing", "train_step_timing in s", Format::Meaning::seconds},
    {"NeMo", "DLLL", "train_step_time", Format::Meaning::seconds},
    {"llm-foundry", "throughput/batches_per_sec", "throughput/batches_per_sec",
     Format::Meaning::steps_per_second},
    {"DeepSpeed", "steps:", "iter time (s)", Format::Meaning::seconds},
    {hugging_face, "loss", "tokens_per_second_per_gpu", Format::Meaning::tokens},  // Axolotl
    {hugging_face, "train_runtime", "train_steps_per_second", Format::Meaning::steps_per_second},
};

/// tqdm's bar without a name, as transformers' Trainer has it:
/// "  2%|#  | 10/500 [00:30<24:30,  3.00s/it]": step 10, 3 s.
struct Progress {
  std::int64_t step = 0;
  double seconds = 0;
};
std::optional<Progress> progress_in(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" 0123456789");
  if (begin == 0 || begin == std::string_view::npos || text[begin] != '%') return std::nullopt;
  const std::size_t bar = text.find_last_of('|');
  if (bar == std::string_view::npos) return std::nullopt;
  const auto step = leading_number(text.substr(bar + 1));
  const std::size_t comma = text.find(", ", bar);
  if (!step || *step < 1 || *step > 1e12 || comma == std::string_view::npos) return std::nullopt;
  const std::string_view pace = text.substr(comma + 2);
  const auto value = leading_number(pace);
  if (!value || !(*value > 0) || *value > 1e9) return std::nullopt;
  const bool per_step = pace.find("s/it") != std::string_view::npos;
  if (!per_step && pace.find("it/s") == std::string_view::npos) return std::nullopt;
  return Progress{static_cast<std::int64_t>(*step), per_step ? *value : 1 / *value};
}

/// What stands behind `word` and any blanks, quotes, ':' and '='.
std::optional<std::string_view> behind(std::string_view line, std::string_view word) {
  const std::size_t at = line.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(at + word.size());
  const std::size_t value = rest.find_first_not_of(" \t:='\"");
  return value == std::string_view::npos ? std::string_view() : rest.substr(value);
}

/// Without colours ("ESC [ 3 1 m").
std::string plain(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      out += line[i];
      continue;
    }
    while (i + 1 < line.size() && line[i] != 'm') ++i;
  }
  return out;
}

/// "11.5K" is 11500 where the framework prints so.
std::optional<double> scaled_number(std::string_view text, bool scaled) {
  const auto value = leading_number(text);
  if (!value || !scaled) return value;
  const std::size_t end = text.find_first_not_of("0123456789.,");
  const char unit = end == std::string_view::npos ? ' ' : text[end];
  return unit == 'K' ? *value * 1e3 : unit == 'M' ? *value * 1e6 : *value;
}

class LogReader {
 public:
  explicit LogReader(const std::string& path) { log_.file = path; }

  void line(std::string_view text) {
    ++number_;
    // A progress bar writes over its line.
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find('\r', at), text.size());
      part(plain(text.substr(at, end - at)));
      at = end + 1;
    }
  }

  StepLog take() {
    log_.settings = settings_.take();
    if (!bars_.empty() && (log_.framework.empty() || log_.framework == hugging_face)) {
      log_.framework = hugging_face;
      log_.step_s.clear();
      log_.numbers.clear();
      for (const Progress& bar : bars_) {
        log_.step_s.push_back(bar.seconds);
        log_.numbers.push_back(bar.step);
      }
    }
    return std::move(log_);
  }

 private:
  void part(const std::string& text) {
    for (const Format& format : formats) {
      if (text.find(format.mark) == std::string::npos) continue;
      const auto value = behind(text, format.word);
      if (!value) continue;
      step(format, *value);
      log_.numbers.push_back(number_of(format, text));
      break;
    }
    if (const auto bar = progress_in(text);
        bar && (bars_.empty() || bars_.back().step != bar->step))
      bars_.push_back(*bar);
    rates(text);
    memory(text);
    settings_.line(text);
    // A step's line knows the batch of that step, which may have grown.
    for (const std::string_view word : {"global batch size:", "global_batch_size:"})
      if (const auto batch = behind(text, word); batch && !log_.framework.empty())
        if (const auto value = leading_number(*batch); value && *value >= 1 && *value <= 1e12)
          settings_.set(log_.framework == "NeMo" ? "model.global_batch_size" : "global_batch_size",
                        std::to_string(static_cast<std::int64_t>(*value)));
  }

  /// What stands beside a step's time: Megatron's and torchtitan's FLOP/s (of the model, as they
  /// count them), torchtitan's MFU, NeMo 2's tokens.
  void rates(const std::string& text) {
    const auto keep = [&](std::vector<double>& out, std::string_view word, double unit) {
      if (const auto rest = behind(text, word))
        if (const auto value = leading_number(*rest); value && *value > 0)
          out.push_back(*value * unit);
    };
    if (log_.framework == "Megatron-LM")
      keep(log_.flops_per_second_per_gpu, "throughput per GPU (TFLOP/s/GPU):", 1e12);
    if (log_.framework == "Megatron-LM") keep(log_.flops_per_second_per_gpu, "TFLOPs:", 1e12);
    if (log_.framework == "llm-foundry")
      keep(log_.tokens_per_second_per_gpu, "throughput/device/tokens_per_sec", 1);
    if (log_.framework == verl) keep(log_.mfu, "perf/mfu/actor:", 1);
    if (log_.framework == "nanotron")
      keep(log_.flops_per_second_per_gpu, "model_tflops_per_gpu:", 1e12);
    if (log_.framework == "NeMo")
      keep(log_.tokens_per_second_per_gpu, "tokens_per_sec_per_gpu:", 1);
    if (log_.framework != "torchtitan") return;
    keep(log_.flops_per_second_per_gpu, "tflops:", 1e12);
    keep(log_.mfu, "mfu:", 1e-2);
  }

  /// Of the step, where it stands behind the mark; else 0.
  static std::int64_t number_of(const Format& format, std::string_view text) {
    const bool stands = format.mark.starts_with("iteration") || format.mark.starts_with("step");
    const auto number =
        stands ? leading_number(behind(text, format.mark).value_or("")) : std::nullopt;
    return number && *number >= 1 && *number <= 1e12 ? static_cast<std::int64_t>(*number) : 0;
  }

  void step(const Format& format, std::string_view text) {
    const auto value = scaled_number(text, format.framework == "nanotron");
    const auto where = [&] { return fmt::format("{}:{}", log_.file, number_); };
    if (!value || !(*value > 0) || *value > 1e12)
      throw InputError(where(),
                       fmt::format("'{}' is no {}", printable(text.substr(0, 20)), format.word));
    if (log_.framework.empty()) log_.framework = format.framework;
    if (log_.framework != format.framework)
      throw InputError(where(),
                       fmt::format("a step of {} in a log of {}", format.framework, log_.framework),
                       "give the log of one run");
    if (format.meaning == Format::Meaning::milliseconds) log_.step_s.push_back(*value / 1000);
    if (format.meaning == Format::Meaning::seconds) log_.step_s.push_back(*value);
    if (format.meaning == Format::Meaning::steps_per_second) log_.step_s.push_back(1 / *value);
    if (format.meaning == Format::Meaning::tokens) log_.tokens_per_second_per_gpu.push_back(*value);
  }

  /// Megatron's "(after 2 iterations) memory (MB) | ... | max allocated: 5678.9" are MiB, of every
  /// rank; torchtitan's "memory: 40.10GiB(42.1%)" is reserved.
  void memory(const std::string& text) {
    std::optional<double> mebibytes;
    if (text.find("memory (MB)") != std::string::npos) {
      if (const auto value = behind(text, "max allocated:")) mebibytes = leading_number(*value);
    } else if (log_.framework == "torchtitan") {
      if (const auto value = behind(text, "memory:"); value && value->find("GiB") < 12)
        if (const auto gibibytes = leading_number(*value)) mebibytes = *gibibytes * 1024;
    } else if (log_.framework == verl) {  // device.max_memory_allocated() / 2^30
      if (const auto value = behind(text, "perf/max_memory_allocated_gb:"))
        if (const auto gibibytes = leading_number(*value)) mebibytes = *gibibytes * 1024;
    } else if (text.find("memory/max_mem_allocated(gib)") != std::string::npos) {  // Axolotl
      if (const auto value = behind(text, "memory/max_mem_allocated(gib)"))
        if (const auto gibibytes = leading_number(*value)) mebibytes = *gibibytes * 1024;
    }
    if (!mebibytes || !(*mebibytes > 0) || *mebibytes > 1e9) return;
    const Bytes bytes(static_cast<std::int64_t>(*mebibytes * (1 << 20)));
    log_.memory = std::max(log_.memory.value_or(Bytes(0)), bytes);
  }

  StepLog log_;
  SettingsReader settings_;
  std::vector<Progress> bars_;
  std::int64_t number_ = 0;
};

/// Median of those behind the first `left_out` of `steps`; what the first steps did not print is
/// left out already. None of none.
std::optional<double> middle(const std::vector<double>& values, std::size_t steps,
                             std::size_t left_out) {
  left_out -= std::min(left_out, steps - std::min(steps, values.size()));
  if (values.size() <= left_out) return std::nullopt;
  return median({values.begin() + static_cast<std::ptrdiff_t>(left_out), values.end()});
}

}  // namespace

InputError no_steps_in(const std::string& path) {
  return {path, "is no trace and shows no step of a known framework",
          "give PyTorch profiler JSON or a log of Megatron-LM, torchtitan, NeMo, llm-foundry or "
          "DeepSpeed"};
}

StepLog read_log(const std::string& path, std::streambuf& text) {
  constexpr std::size_t longest_line = 1 << 20;
  LogReader reader(path);
  std::string line;
  for (int c = text.sbumpc(); c != std::streambuf::traits_type::eof(); c = text.sbumpc()) {
    if (c != '\n' && line.size() < longest_line) {
      line += static_cast<char>(c);
      continue;
    }
    reader.line(line);
    line.clear();
  }
  reader.line(line);
  StepLog log = reader.take();
  if (log.framework.empty() && log.settings.empty()) throw no_steps_in(path);
  return log;
}

MeasuredStep measure_log(const StepLog& log, std::optional<std::int64_t> skip) {
  const std::size_t there = std::max(log.step_s.size(), log.tokens_per_second_per_gpu.size());
  const std::size_t tenth = there >= 2 ? std::max<std::size_t>(1, there / 10) : 0;
  const std::size_t left_out = skip ? static_cast<std::size_t>(*skip) : tenth;
  if (left_out >= there)
    throw InputError(log.file, fmt::format("shows {} steps, {} to be left out", there, left_out),
                     "lower --skip");
  MeasuredStep out;
  if (const auto step = middle(log.step_s, there, left_out)) out.mean.step = to_duration(*step);
  out.mean.tokens_per_second_per_gpu = middle(log.tokens_per_second_per_gpu, there, left_out);
  out.mean.flops_per_second_per_gpu = middle(log.flops_per_second_per_gpu, there, left_out);
  out.mean.mfu = middle(log.mfu, there, left_out);
  out.mean.memory = log.memory;
  out.notes.push_back(fmt::format("Log of {}: median of {} printed steps, the first {} left out.",
                                  log.framework, there - left_out, left_out));
  if (log.memory && log.framework == "torchtitan")
    out.notes.emplace_back("torchtitan prints reserved memory, the simulation allocated memory.");
  return out;
}

}  // namespace stepcast::validate
