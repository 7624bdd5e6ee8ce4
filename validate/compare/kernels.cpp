#include "validate/compare/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "calibrate/import/collective_case.hpp"
#include "calibrate/rows/source_key.hpp"
#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "sim/confidence/interval.hpp"
#include "sim/files/names.hpp"
#include "sim/files/toml_value.hpp"
#include "sim/kernels/attention_times.hpp"
#include "sim/kernels/elementwise_times.hpp"
#include "sim/kernels/gemm_times.hpp"
#include "sim/kernels/grouped_times.hpp"
#include "sim/kernels/operand_types.hpp"
#include "sim/tables/gpu_names.hpp"
#include "sim/tables/provenance.hpp"

namespace stepcast::validate {
namespace {

using calibrate::Unpredictable;
using sim::AttentionRow;
using sim::AttentionTimes;
using sim::ElementwiseRow;
using sim::GemmRow;
using sim::GemmTimes;
using workloads::AttentionKernel;
using workloads::Dtype;

/// bf16 for both 16-bit types.
Dtype dtype_of(const std::string& text) {
  const auto type = sim::operand_type(text);
  if (!type) throw Unpredictable{"dtype " + text};
  return *type;
}

/// "gemm", "gemm mxfp8", "grouped_gemm fp8_block".
std::string of_type(const std::string& kind, Dtype dtype) {
  return workloads::bits_per_element(dtype) < 16
             ? kind + " " + sim::word_for(sim::dtype_names, dtype)
             : kind;
}

AttentionKernel implementation_of(const std::string& name) {
  using enum AttentionKernel;
  if (name == "ck") return flash2;  // whatever is asked for, AMD's GPUs run it
  for (const AttentionKernel kernel : {flash2, flash3, flash4, cudnn, memory_efficient, unfused})
    if (sim::implementation_name(kernel) == name) return kernel;
  throw Unpredictable{"attention implementation " + name};
}

bool same_shape(const GemmRow& a, const GemmRow& b) {
  return a.m == b.m && a.n == b.n && a.k == b.k && a.groups == b.groups;
}

bool same_shape(const AttentionRow& a, const AttentionRow& b) {
  return a.implementation == b.implementation && a.pass == b.pass && a.mask == b.mask &&
         a.batch == b.batch && a.heads == b.heads && a.sequence == b.sequence &&
         a.head_dim == b.head_dim && a.value_dim == b.value_dim && a.window == b.window &&
         a.dtype == b.dtype;
}

bool same_shape(const ElementwiseRow& a, const ElementwiseRow& b) {
  return a.tokens == b.tokens && a.width == b.width;
}

/// Rows of the pool that a prediction of `row` may see.
template <class Row>
struct Visible {
  std::vector<Row> rows;
  const char* left_out = "shape";
};

template <class Row>
Visible<Row> visible_to(const Row& row, const std::vector<Row>& pool, const std::string& gpu,
                        LeaveOut leave_out) {
  const auto of_this_chip = [&](const Row& other) {
    return sim::kinship(other.gpu, gpu) <= sim::Kinship::same_chip;
  };
  if (leave_out == LeaveOut::gpu) {
    Visible<Row> out{pool, "GPU"};
    std::erase_if(out.rows, of_this_chip);
    return out;
  }
  if (leave_out == LeaveOut::source) {
    Visible<Row> out{calibrate::without_source(pool, calibrate::source_key(*row.source)), "source"};
    const auto serves = [&](const Row& other) {
      return other.source->confidence != "low" && of_this_chip(other);
    };
    if (std::any_of(out.rows.begin(), out.rows.end(), serves)) return out;
  }
  Visible<Row> out{pool};
  std::erase_if(out.rows, [&](const Row& other) { return same_shape(row, other); });
  return out;
}

class KernelPredictor {
 public:
  KernelPredictor(const sim::CalibrationTable& pool, const sim::Catalogue& catalogue,
                  LeaveOut leave_out)
      : pool_(pool), leave_out_(leave_out) {
    for (const std::string& name : catalogue.names("gpus"))
      gpus_.push_back(catalogue.gpu(sim::toml_text(name, "gpus")));
  }

  template <class Row>
  ComparedRow compare(const Row& row, const std::string& kind) const {
    ComparedRow out;
    out.gpu = row.gpu;
    out.kind = kind;
    try {
      predict(row, out);
      if (row.source->confidence == "low") out.not_scored = "low confidence";
    } catch (const Unpredictable& why) {
      out.not_scored = why.reason;
    }
    return out;
  }

 private:
  const topology::GpuSpec& gpu_of(const std::string& name) const {
    for (const topology::GpuSpec& gpu : gpus_)
      if (sim::kinship(name, gpu.name) == sim::Kinship::same) return gpu;
    throw Unpredictable{name + " is not in the catalogue"};
  }

  void predict(const GemmRow& row, ComparedRow& out) const {
    const topology::GpuSpec& gpu = gpu_of(row.gpu);
    const sim::GemmShape shape{row.m, row.n, row.k, 1};
    out.what = fmt::format("{} x {} x {} {}{}", row.m, row.n, row.k, row.dtype,
                           row.layout.empty() ? "" : " " + row.layout);
    if (row.data == "zeros") throw Unpredictable{"a product of zeros"};
    if (row.is_best()) throw Unpredictable{"the best of a search, " + row.choice};
    // Volta multiplies fp16 alone; elsewhere the two are one.
    const Dtype dtype = row.dtype.starts_with("fp16") ? Dtype::fp16 : dtype_of(row.dtype);
    if (row.groups > 0) return predict_grouped(row, gpu, dtype, out);
    // As the model reads the row: times on small data are corrected to random data.
    GemmRow trusted = row;
    trusted.source = row.source.with_confidence("high");
    const auto truth = GemmTimes({trusted}, gpu).time_of(shape, dtype);
    const auto visible = visible_to(row, pool_.gemm, gpu.name, leave_out_);
    const auto time = GemmTimes(visible.rows, gpu).time_of(shape, dtype);
    if (!truth || !time) throw Unpredictable{"no peak of " + row.dtype + " on " + gpu.name};
    out.measured = truth->duration;
    out.predicted = time->duration;
    out.provenance = sim::name_of(time->provenance);
    out.group = {gpu.name, of_type("gemm", dtype), visible.left_out};
  }

  void predict_grouped(const GemmRow& row, const topology::GpuSpec& gpu, Dtype dtype,
                       ComparedRow& out) const {
    out.what = fmt::format("{} x ", row.groups) + out.what;
    const sim::GroupedCall call{
        {row.m, row.n, row.k, row.groups}, row.accumulate, row.call == "one_launch"};
    const auto visible = visible_to(row, pool_.gemm, gpu.name, leave_out_);
    const GemmTimes gemms(visible.rows, gpu);
    const auto time = sim::GroupedTimes(visible.rows, gpu, gemms).time_of(call, dtype, gemms);
    if (!time) throw Unpredictable{"no peak of " + row.dtype + " on " + gpu.name};
    out.measured = to_duration(call.each.flops() / sim::corrected_rate(row, gpu));
    out.predicted = time->duration;
    out.provenance = sim::name_of(time->provenance);
    out.group = {gpu.name, of_type("grouped_gemm", dtype), visible.left_out};
  }

  /// Norms by the software that calls them; other kernels of few rows are no family.
  void predict(const ElementwiseRow& row, ComparedRow& out) const {
    const topology::GpuSpec& gpu = gpu_of(row.gpu);
    out.what = fmt::format("{} x {} {} {}", row.tokens, row.width, row.pass, row.implementation);
    if (row.width < 1024) throw Unpredictable{"a norm of heads: the model has none"};
    workloads::Kernel norm;
    norm.family = row.pass == "backward" ? workloads::KernelFamily::norm_backward
                                         : workloads::KernelFamily::norm;
    norm.bytes = row.bytes;
    const auto visible = visible_to(row, pool_.elementwise, gpu.name, leave_out_);
    const workloads::Fusion fusion = row.implementation == "cudnn" ? workloads::Fusion::fused
                                     : row.implementation == "inductor"
                                         ? workloads::Fusion::compiled
                                         : workloads::Fusion::eager;
    const auto time = sim::ElementwiseTimes(visible.rows, gpu, fusion).time_of(norm);
    if (!time) throw Unpredictable{"no norm of " + row.implementation + " on " + gpu.name};
    out.measured = row.duration;
    out.predicted = time->duration;
    out.provenance = sim::name_of(time->provenance);
    out.group = {gpu.name, out.kind + " " + row.implementation, visible.left_out};
  }

  void predict(const AttentionRow& row, ComparedRow& out) const {
    const topology::GpuSpec& gpu = gpu_of(row.gpu);
    out.what = fmt::format("b {} h {} s {} d {} {} {}", row.batch, row.heads, row.sequence,
                           row.head_dim, row.mask, row.implementation);
    if (row.mask == "not_stated") throw Unpredictable{"mask not stated"};
    if (row.batch < 1 || row.heads < 1) throw Unpredictable{"batch or heads not stated"};
    const AttentionKernel kernel = implementation_of(row.implementation);
    const auto visible = visible_to(row, pool_.attention, gpu.name, leave_out_);
    const AttentionTimes times(visible.rows, gpu);
    double flops = 0;
    Duration predicted{};
    for (const bool backward : {false, true}) {
      if (row.pass == (backward ? "forward" : "backward")) continue;
      const sim::AttentionShape shape{.batch = row.batch,
                                      .heads = row.heads,
                                      .sequence = row.sequence,
                                      .head_dim = row.head_dim,
                                      .causal = row.mask == "causal",
                                      .backward = backward,
                                      .value_dim = row.value_dim,
                                      .window = row.window,
                                      .dtype = dtype_of(row.dtype)};
      const auto time = times.time_of(shape, kernel);
      if (!time) throw Unpredictable{"no attention rate for " + gpu.name + " is left"};
      flops += shape.flops();
      predicted += time->duration;
      out.provenance = sim::name_of(time->provenance);
    }
    out.measured = to_duration(flops / row.rate.value);
    out.predicted = predicted;
    out.group = {gpu.name, of_type(out.kind + " " + row.implementation, dtype_of(row.dtype)),
                 visible.left_out};
  }

  const sim::CalibrationTable& pool_;
  LeaveOut leave_out_;
  std::vector<topology::GpuSpec> gpus_;
};

/// For JSON, and for who reads the figures.
struct LeftOut {
  const char *word, *note;
};
LeftOut left_out_by(LeaveOut leave_out) {
  switch (leave_out) {
    case LeaveOut::source:
      return {"source",
              "Leave-one-source-out; where no other source has measured the GPU, only the rows of "
              "the same shape are left out."};
    case LeaveOut::shape:
      return {"shape", "Leave-one-shape-out: other shapes of the same source are seen."};
    case LeaveOut::gpu:
      return {"gpu",
              "Leave-one-GPU-out: no row of the chip is seen, as of a card that nobody has "
              "measured; siblings of its generation are."};
  }
  throw BrokenPromise("a row that nothing is left out for");
}

}  // namespace

std::vector<CardCoverage> coverage_of_cards(const Comparison& comparison, double level) {
  std::vector<sim::Residual> errors;
  for (const ComparedRow& row : comparison.rows)
    if (row.scored() && row.kind.find("gemm") != row.kind.npos)
      errors.push_back({row.group.front(), "", -std::log1p(row.error()), {}});
  std::map<std::string, std::size_t> cards;
  for (const sim::Residual& error : errors) ++cards[error.source];
  std::vector<CardCoverage> out;
  for (const auto& [card, rows] : cards) {
    sim::ResidualRefs others;
    std::vector<double> own;
    for (const sim::Residual& error : errors) {
      if (error.source == card)
        own.push_back(error.log_ratio);
      else if (cards[error.source] >= rows_of_a_card)
        others.push_back(&error);
    }
    if (others.empty()) continue;
    const sim::Interval bar = sim::interval_of(others, level);
    const auto covered =
        std::count_if(own.begin(), own.end(), [&](double error) { return bar.covers(error); });
    CardCoverage& one = out.emplace_back();
    one = {card, rows, 0.0, static_cast<double>(covered) / static_cast<double>(own.size())};
    for (double& error : own) error = std::abs(std::expm1(-error));
    one.median = median(std::move(own));
  }
  return out;
}

Comparison compare_kernels(const std::string& file, const std::vector<MeasuredRow>& rows,
                           const sim::CalibrationTable& known, const sim::Catalogue& catalogue,
                           LeaveOut leave_out) {
  Comparison out{.file = file,
                 .title = "Kernels",
                 .left_out = {},
                 .notes = {},
                 .group_headings = {"GPU", "kernel", "left out"},
                 .rows = {}};
  const LeftOut left = left_out_by(leave_out);
  out.left_out = left.word;
  out.notes = {left.note,
               "The model's constants are not refitted: some were chosen with published rows in "
               "view.",
               "Products timed on small data are compared as the model reads them "
               "(sim/kernels/gemm_times.cpp)."};
  const sim::CalibrationTable pool = pool_of(known, rows);
  const KernelPredictor predictor(pool, catalogue, leave_out);
  for (const MeasuredRow& row : rows) {
    std::optional<ComparedRow> compared;
    for (const GemmRow& gemm : row.table.gemm) compared = predictor.compare(gemm, row.kind);
    for (const AttentionRow& a : row.table.attention) compared = predictor.compare(a, row.kind);
    for (const ElementwiseRow& e : row.table.elementwise)
      if (e.width > 0 && row.kind == "rmsnorm") compared = predictor.compare(e, row.kind);
    if (!compared) {
      ++out.other_kinds;
      continue;
    }
    compared->line = row.line;
    out.rows.push_back(std::move(*compared));
  }
  if (out.rows.empty()) throw InputError(file, "holds no gemm, attention or rmsnorm row");
  return out;
}

}  // namespace stepcast::validate
