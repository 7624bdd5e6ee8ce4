#include "validate/published/open_choices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/files/names.hpp"
#include "validate/rows/row_words.hpp"

namespace stepcast::validate {
namespace {

constexpr double bytes_of_gib = 1024.0 * 1024.0 * 1024.0;

/// Kinds of recompute by what they keep, most first.
std::vector<std::string> kinds_of_recompute() {
  std::vector<std::string> out;
  for (const auto& [name, kind] : sim::recompute_names)
    if (kind != workloads::Recompute::full) out.emplace_back(name);
  out.push_back(sim::word_for(sim::recompute_names, workloads::Recompute::full));
  return out;
}

std::size_t first_where(const std::vector<ChoiceForecast>& forecasts, auto holds) {
  const auto at = std::ranges::find_if(forecasts, holds);
  return static_cast<std::size_t>(at - forecasts.begin());
}

std::size_t nearest(const std::vector<ChoiceForecast>& forecasts, double peak) {
  const auto distance = [&](const ChoiceForecast& f) { return std::abs(f.figure_gib - peak); };
  const auto at = std::ranges::min_element(
      forecasts, [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
  return static_cast<std::size_t>(at - forecasts.begin());
}

}  // namespace

std::vector<OpenChoice> open_choices(const PublishedRow& row, const FrameworkDefaults& framework) {
  const bool recompute = row.activation_checkpointing.empty();
  const bool compiler = row.compile.empty() && framework.compiles;
  const std::string usual =
      sim::word_for(sim::recompute_names, framework.recompute.value_or(workloads::Recompute::none));
  using Words = std::vector<std::string>;
  std::vector<OpenChoice> out;
  for (const std::string& compile : compiler ? Words{"no", "yes"} : Words{row.compile})
    for (const std::string& kind :
         recompute ? kinds_of_recompute() : Words{row.activation_checkpointing}) {
      OpenChoice choice{recompute ? kind : "", row, false};
      choice.row.activation_checkpointing = kind;
      choice.row.compile = compile;
      const bool compiled = compiler && compile == "yes";
      if (compiler && (compiled || !recompute))
        choice.name +=
            std::string(recompute ? ", " : "") + (compiled ? "compiled" : "not compiled");
      choice.is_default = !compiled && (!recompute || kind == usual);
      out.push_back(std::move(choice));
    }
  return out;
}

double figure_of(const workloads::MemoryFigures& figures, const std::string& figure) {
  const Bytes bytes = figure == "allocated"  ? figures.allocated
                      : figure == "reserved" ? figures.reserved
                      : figure == "process"  ? figures.process()
                                             : figures.needed();
  return static_cast<double>(bytes.value) / bytes_of_gib;
}

TakenChoice taken_choice(const PublishedRow& row, const std::vector<ChoiceForecast>& forecasts) {
  const bool ran = !row.ran_out_of_memory;
  const double peak = ran ? row.mem_gib_per_gpu.value_or(0) : 0.0;
  TakenChoice out;
  const char* why = "the framework's own default";
  const auto is_default = [](const ChoiceForecast& f) { return f.choice->is_default; };
  if (peak > 0) {
    out.index = nearest(forecasts, peak);
    why = "nearest to the peak";
  } else {
    out.index = first_where(forecasts, is_default);
    if (out.index == forecasts.size()) out.index = 0;  // it cannot be made
    if (ran && !forecasts[out.index].fits) {
      out.index = std::min(first_where(forecasts, [](const auto& f) { return f.fits; }),
                           forecasts.size() - 1);
      why = "the least that fits";
    }
  }
  const bool recompute = row.activation_checkpointing.empty();
  const bool compiler = forecasts.front().choice->row.compile != row.compile;
  out.told = recompute && compiler ? "recompute and compiler are not stated: "
             : recompute           ? "recompute is not stated: "
                                   : "a compiler is not stated: ";
  for (const ChoiceForecast& f : forecasts)
    out.told += fmt::format("{}{} {:.1f} GiB", &f == &forecasts.front() ? "" : "; ", f.choice->name,
                            f.figure_gib);
  out.told += fmt::format("; taken: {}, {}", forecasts[out.index].choice->name, why);
  return out;
}

}  // namespace stepcast::validate
