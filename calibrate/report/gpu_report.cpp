#include "calibrate/report/gpu_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "calibrate/report/overlap_check.hpp"
#include "sim/files/toml_value.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/tables/gpu_names.hpp"

namespace stepcast::calibrate {
namespace {

using sim::CalibrationTable;

/// Of cuBLAS on one H100-SXM5-80GB with random data in [-1, 1], PyTorch 2.11, driver 580.159.04,
/// 2026-11-13.
constexpr double anchor_tflops = 798;
constexpr std::int64_t anchor_size = 8192;

bool same_gpu(const std::string& measured, const std::string& published) {
  return sim::kinship(published, measured) == sim::Kinship::same;
}

bool sixteen_bit(const std::string& dtype) { return dtype == "bf16" || dtype == "fp16"; }
bool like(const std::string& a, const std::string& b) {
  return a == b || (sixteen_bit(a) && sixteen_bit(b));
}

double tflops(FlopsPerSecond rate) { return rate.value * 1e-12; }

struct Spread {
  std::vector<double> values;

  double at(double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
  }
  std::string text() {
    return fmt::format("{} rows, median {:.3g}, from {:.3g} to {:.3g}", values.size(), at(0.5),
                       at(0), at(1));
  }
};

std::string machine(const CalibrationTable& table) {
  std::set<sim::MeasuredOn> machines;
  for (const auto& row : table.gemm) machines.insert(row.source->on);
  for (const auto& row : table.elementwise) machines.insert(row.source->on);
  std::string text;
  for (const auto& on : machines)
    text += fmt::format("{}: driver {}, {}, {}{}{}, {}; {}\n  {}\n", on.device, on.driver,
                        on.runtime, on.gemm_library, on.collective_library.empty() ? "" : ", ",
                        on.collective_library, on.clocks, on.date, on.command);
  return text;
}

std::string products(const CalibrationTable& measured, const CalibrationTable& published) {
  std::string text = "\nproducts, TFLOP/s\n";
  std::map<std::tuple<std::string, std::string, std::string, std::string>, Spread> rates;
  Spread ratios;
  for (const auto& row : measured.gemm) {
    rates[{row.dtype, row.layout, row.choice, row.cache}].values.push_back(tflops(row.rate));
    if (row.is_best() || row.cache == "hot") continue;
    for (const auto& other : published.gemm)
      if (!other.is_best() && same_gpu(row.gpu, other.gpu) && like(row.dtype, other.dtype) &&
          row.m == other.m && row.n == other.n && row.k == other.k &&
          (row.layout == "NT" || row.layout.empty()))
        ratios.values.push_back(row.rate / other.rate);
  }
  for (auto& [key, spread] : rates)
    text += fmt::format("  {:<6}{:<4}{:<12}{:<6}{}\n", std::get<0>(key), std::get<1>(key),
                        std::get<2>(key), std::get<3>(key), spread.text());
  text += ratios.values.empty() ? "  no published row of this GPU has a measured shape\n"
                                : "  measured over published: " + ratios.text() + "\n";
  for (const auto& row : measured.gemm)
    if (row.m == anchor_size && row.n == anchor_size && row.k == anchor_size && row.dtype == "bf16")
      text += fmt::format(
          "  8192^3 bf16 {} {} {}: {:.0f} TFLOP/s, {:.3f} of {:.0f} (cuBLAS by "
          "PyTorch on an H100-SXM5-80GB)\n",
          row.layout, row.choice, row.cache, tflops(row.rate), tflops(row.rate) / anchor_tflops,
          anchor_tflops);
  return text;
}

/// Best-of-eight over the first proposal, of equal products.
std::string tuning_gain(const CalibrationTable& measured) {
  Spread gains;
  for (const auto& best : measured.gemm)
    if (best.choice == "best_of_8")
      for (const auto& first : measured.gemm)
        if (first.choice == "heuristic" &&
            std::tie(first.gpu, first.dtype, first.m, first.n, first.k, first.layout,
                     first.accumulate, first.cache) == std::tie(best.gpu, best.dtype, best.m,
                                                                best.n, best.k, best.layout,
                                                                best.accumulate, best.cache))
          gains.values.push_back(best.rate / first.rate);
  return gains.values.empty() ? ""
                              : "  best of eight over the first proposal: " + gains.text() + "\n";
}

using AttentionKey = std::tuple<std::string, std::string, std::int64_t, std::int64_t, std::string>;
struct Passes {
  double forward = 0, backward = 0;  // TFLOP/s; 0: not measured

  /// Backward has 2.5 times the forward FLOPs.
  std::optional<double> both() const {
    if (forward <= 0 || backward <= 0) return std::nullopt;
    return 3.5 / (1 / forward + 2.5 / backward);
  }
};

/// FlashAttention-2's published rate forward and backward at that sequence, head and mask,
/// whatever the batch.
std::optional<double> flash2(const CalibrationTable& published, const std::string& gpu,
                             std::int64_t sequence, std::int64_t head_dim,
                             const std::string& mask) {
  for (const auto& row : published.attention)
    if (same_gpu(gpu, row.gpu) && row.implementation == "flash2" &&
        row.pass == "forward_backward" && row.sequence == sequence && row.head_dim == head_dim &&
        row.mask == mask)
      return tflops(row.rate);
  return std::nullopt;
}

std::string attention(const CalibrationTable& measured, const CalibrationTable& published) {
  std::map<AttentionKey, Passes> rates;
  std::string gpu;
  for (const auto& row : measured.attention) {
    if (row.cache == "hot") continue;
    gpu = row.gpu;
    Passes& passes = rates[{row.implementation, row.dtype, row.head_dim, row.sequence, row.mask}];
    double& best = row.pass == "backward" ? passes.backward : passes.forward;
    best = std::max(best, tflops(row.rate));
  }
  std::string text = fmt::format(
      "\nattention, TFLOP/s (causal counts half)\n  {:<12}{:<6}{:>5}{:>7}"
      "  {:<8}{:>8}{:>9}{:>6}{:>14}\n",
      "kernel", "dtype", "head", "length", "mask", "forward", "backward", "both", "of FA2 (both)");
  for (const auto& [key, passes] : rates) {
    const auto& [implementation, dtype, head_dim, sequence, mask] = key;
    const auto both = passes.both();
    const auto fa2 = flash2(published, gpu, sequence, head_dim, mask);
    text += fmt::format("  {:<12}{:<6}{:>5}{:>7}  {:<8}{:>8.0f}{:>9.0f}{:>6}{:>14}\n",
                        implementation, dtype, head_dim, sequence, mask, passes.forward,
                        passes.backward, both ? fmt::format("{:.0f}", *both) : "-",
                        both && fa2 ? fmt::format("{:.2f} of {:.0f}", *both / *fa2, *fa2) : "-");
  }
  return rates.empty() ? "" : text;
}

std::string memory_bound(const CalibrationTable& measured) {
  double fastest = 0;  // bytes per second
  for (const auto& row : measured.copies)
    if (row.kind == "memory") fastest = std::max(fastest, row.rate.value);
  if (measured.elementwise.empty()) return "";
  std::string text = fmt::format(
      "\nmemory-bound kernels: GB/s of the least traffic, and of the fastest copy ({:.0f} GB/s)\n",
      fastest * 1e-9);
  std::map<std::tuple<std::string, std::string, std::string>, const sim::ElementwiseRow*> largest;
  for (const auto& row : measured.elementwise) {
    auto& known = largest[{row.kind, row.pass, row.dtype}];
    if (known == nullptr || row.bytes > known->bytes) known = &row;
  }
  for (const auto& [key, row] : largest) {
    const double rate = (row->bytes / row->duration).value;
    text += fmt::format("  {:<16}{:<10}{:<6}{:>9.1f} MiB{:>10.0f} GB/s{}\n", row->kind, row->pass,
                        row->dtype, static_cast<double>(row->bytes.value) / (1 << 20), rate * 1e-9,
                        fastest > 0 ? fmt::format("{:>8.1f} %", 100 * rate / fastest) : "");
  }
  return text;
}

/// "pytorch-fsdp2 4.5 us, ...": what each software of the catalogue pays for a launch, Python and
/// all, beside which the driver's own share is small.
std::string software_launches(const sim::Catalogue& catalogue) {
  std::string text;
  for (const std::string& name : catalogue.names("software")) {
    const sim::TomlValue& document = catalogue.entry("software", name, "report");
    const sim::TomlValue* launch = document.find("launch_kernel");
    if (launch == nullptr || launch->text() == nullptr) continue;
    text += (text.empty() ? "" : ", ") + name + " " + *launch->text();
  }
  return text;
}

std::string rest(const CalibrationTable& measured, sim::Session& session) {
  std::string text;
  for (const auto& row : measured.copies)
    text += fmt::format("\ncopy {} {:.0f} MiB: {:.4g} GB/s", row.what,
                        static_cast<double>(row.bytes.value) / (1 << 20), row.rate.value * 1e-9);
  for (const auto& row : measured.launches)
    text += fmt::format("\nlaunch of a {}: {:.3g} us; the host's work for it {}", row.what,
                        seconds(row.duration) * 1e6, software_launches(session.catalogue()));
  for (const auto& row : measured.powers)
    text += fmt::format("\npower, {}: {:.0f} W", row.load, row.power.value);
  for (const auto& row : measured.overlaps) {
    const auto modelled = modelled_stretch(row, session);
    text += fmt::format(
        "\n{} beside {} of {} MiB on {} ranks: {:.3f} times as long{}, the "
        "collective {:.3f} times",
        row.kernel, row.collective, row.bytes.value >> 20, row.ranks,
        seconds(row.kernel_beside) / seconds(row.kernel_alone),
        modelled ? fmt::format(" (the simulator's stretch: {:.3f})", *modelled) : "",
        seconds(row.collective_beside) / seconds(row.collective_alone));
  }
  return text.empty() ? "" : text + "\n";
}

std::string quality(const CalibrationTable& measured) {
  Spread errors, spreads;
  std::int64_t samples = 0, thrown_away = 0;
  const auto add = [&](const auto& rows) {
    for (const auto& row : rows) {
      errors.values.push_back(row.quality.error);
      spreads.values.push_back(100 * row.quality.spread);
      samples += row.quality.samples;
      thrown_away += row.quality.throttled;
    }
  };
  add(measured.gemm);
  add(measured.attention);
  add(measured.elementwise);
  if (errors.values.empty()) return "";
  return fmt::format(
      "\nerror against float64: {}\nspread in %: {}\nsamples: {}, thrown away for low clocks: {}\n",
      errors.text(), spreads.text(), samples, thrown_away);
}

}  // namespace

std::string gpu_report(const CalibrationTable& measured, const CalibrationTable& published,
                       sim::Session& session) {
  return machine(measured) + products(measured, published) + tuning_gain(measured) +
         attention(measured, published) + memory_bound(measured) + rest(measured, session) +
         quality(measured);
}

}  // namespace stepcast::calibrate
