#include <fmt/format.h>

#include "engine/units_text.hpp"
#include "sim/files/names.hpp"
#include "sim/handout/step_handout.hpp"
#include "sim/study/answer.hpp"
#include "sim/told/text.hpp"

namespace stepcast::sim {
namespace {

/// The columns that benchmark tables have, for copying.
ToldTable benchmark_row(const StepReport& r) {
  const Scenario& s = r.scenario;
  const auto gpus = static_cast<double>(s.gpus);
  TextTable table;
  for (const char* heading : {"system", "GPUs", "precision", "GBS", "MBS", "seq", "TP", "PP", "CP",
                              "VP", "EP", "tokens/s/GPU", "TFLOP/s/GPU", "GiB"})
    table.column(heading);
  const workloads::ParallelPlan& p = s.plan;
  table.row({s.node.name, counted(s.gpus), std::string(word_for(dtype_names, s.precision.compute)),
             counted(s.global_batch), counted(s.batch.micro_batch), counted(s.batch.sequence),
             counted(p.tensor), counted(p.pipeline), counted(p.context), counted(p.virtual_stages),
             counted(p.expert.degree), rounded(r.tokens_per_second / gpus),
             rounded(r.model_flops_per_gpu.value / 1e12),
             rounded(static_cast<double>(r.memory.total().value) / (1 << 30))});
  return {"A row to copy", std::move(table)};
}

std::string title_of(const Scenario& s) {
  return s.title.empty() ? fmt::format("{} on {} x {}", s.model.name, s.gpus, s.node.gpu.name)
                         : s.title;
}

std::string summary_of(const Scenario& s) {
  return "Forecast of one training step: " + s.model.name + " on " + cluster_text(s) + ", " +
         software_text(s) + ".";
}

}  // namespace

Told step_page(const StepHandout& h, const Catalogue& catalogue, const Origin& origin) {
  const Scenario& s = h.report.scenario;
  Told out{title_of(s), summary_of(s), {glance_section(h)}};
  for (ToldSection& section : engineer_sections(h)) out.sections.push_back(std::move(section));
  if (h.search) out.sections.push_back(search_section(*h.search));
  out.sections.push_back(inputs_section({&s}, catalogue));
  ToldSection made = origin_section(origin, &s);
  made.blocks.emplace_back(benchmark_row(h.report));
  for (const std::string& missing : h.missing)
    made.blocks.emplace_back(Paragraph{"Not on this page: " + missing + "."});
  out.sections.push_back(std::move(made));
  return out;
}

Told search_page(const SearchAnswer& answer, Session& session, const Origin& origin,
                 const std::atomic<bool>& stop) {
  if (answer.result.found.empty()) {
    const Scenario& s = answer.space.bases().front();
    Told out{title_of(s), "No plan of this search fits.", {search_section(answer)}};
    TextTable misses;
    misses.column("nearest plans", "", TextTable::Align::left);
    misses.column("needs per GPU");
    for (const Miss& miss : answer.result.misses)
      misses.row({plan_words(answer.space, miss.knobs), to_text(miss.needed)});
    if (misses.num_rows() > 0)
      out.sections[0].blocks.emplace_back(ToldTable{"What comes nearest", std::move(misses)});
    out.sections.push_back(origin_section(origin, nullptr));
    return out;
  }
  const Found& best = answer.result.found.front();
  // Once more, as an answer: with error bars, failures and the whole run.
  const Answer again = sim::answer(best.report.scenario, simulator_of(session));
  const auto* report = std::get_if<StepReport>(&again);
  StepHandout handout = step_handout(report != nullptr ? *report : best.report, session,
                                     {.alternatives = false}, stop);
  handout.search = answer;
  handout.knobs = best.knobs;
  return step_page(handout, session.catalogue(), origin);
}

Told refused_page(const Scenario& s, const std::string& reason, const Catalogue& catalogue,
                  const Origin& origin) {
  Told out{title_of(s), summary_of(s), {}};
  out.sections.push_back(
      {"At a glance",
       {Paragraph{"This plan does not run: " + reason}, Paragraph{"Plan: " + plan_text(s) + "."}}});
  out.sections.push_back(inputs_section({&s}, catalogue));
  out.sections.push_back(origin_section(origin, &s));
  return out;
}

}  // namespace stepcast::sim
