#include "validate/memory/command.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/confidence/evidence.hpp"
#include "sim/files/json_text.hpp"
#include "sim/files/text_table.hpp"
#include "sim/program/answer_forms.hpp"
#include "sim/program/interrupt.hpp"
#include "validate/memory/reliability.hpp"
#include "validate/published/confidence.hpp"
#include "validate/published/ran.hpp"
#include "validate/published/shipped.hpp"

namespace stepcast::validate {
namespace {

using Json = nlohmann::ordered_json;

constexpr sim::Option memory_options[] = {
    {"confidence", "SHARE", "", "of the bars (default 0.8)"},
    {"threads", "N", "", "rows to run at once (default: all cores)"},
    {"quiet", "", "", "no progress"},
    sim::json_option,
    sim::rows_option,
};

/// Of the rows that ran or died.
std::vector<FitFact> facts_of(const sim::Catalogue& catalogue, const sim::Arguments& arguments) {
  sim::Session session(catalogue);
  std::vector<FitFact> out;
  for (const char* name : {"what_ran", "sweep"}) {
    const ShippedTable& table = *shipped_table(name);
    PublishedOptions wanted;
    wanted.threads = arguments.threads();
    wanted.quiet = arguments.has("quiet");
    wanted.bucket = table.bucket;
    for (FitFact& fact : fit_facts(predict_published(path_of(table, catalogue),
                                                     rows_of(table, catalogue), session, wanted)))
      out.push_back(std::move(fact));
  }
  return out;
}

std::string reliability_text(const std::vector<FitFact>& facts) {
  sim::TextTable table;
  table.column("P(fits)", "", sim::TextTable::Align::left);
  for (const char* heading : {"facts", "mean P(fits)", "fitted", "90 %"}) table.column(heading);
  for (const ReliabilityBin& bin : reliability(facts))
    table.row({fmt::format("{:g} to {:g}", bin.from, bin.to),
               sim::grouped(static_cast<std::int64_t>(bin.facts)), sim::percent(bin.forecast),
               sim::percent(bin.fitted),
               fmt::format("{} to {}", sim::percent(bin.low), sim::percent(bin.high))});
  return fmt::format(
      "{} plans that ran or ran out of memory, each without the peaks of its own source: mean\n"
      "square error of P(fits) {:.3f} (0.25 of a coin)\n{}",
      sim::grouped(static_cast<std::int64_t>(facts.size())), brier_score(facts), table.text());
}

Json reliability_json(const std::vector<FitFact>& facts) {
  Json out = Json::array();
  for (const ReliabilityBin& bin : reliability(facts))
    out.push_back({{"from", bin.from},
                   {"to", bin.to},
                   {"facts", bin.facts},
                   {"mean_p_fits", bin.forecast},
                   {"fitted", bin.fitted},
                   {"low", bin.low},
                   {"high", bin.high}});
  return out;
}

}  // namespace

const sim::Verb memory_verb{
    "stepcast validate memory",
    "",
    0,
    "How often bars of memory hold, each source left out, and how often plans fit beside P(fits).",
    memory_options,
    "stepcast validate memory"};

int run_memory(const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  sim::check_forms(arguments);
  const double level = level_of(arguments);
  const sim::Evidence evidence = sim::read_evidence(catalogue.directory() + "/confidence");
  const std::vector<Covered> covered = covered_memory(evidence, level);
  const std::vector<FitFact> facts = facts_of(catalogue, arguments);
  if (sim::stop_requested()) return sim::stop_code();
  const auto text = [&] {
    std::string out;
    for (const Covered& one : covered) out += coverage_text(one);
    return out + reliability_text(facts);
  };
  const auto json = [&] {
    Json out = sim::parsed_ordered_json(coverage_json(covered, level));
    out["facts"] = facts.size();
    out["brier"] = brier_score(facts);
    out["reliability"] = reliability_json(facts);
    return sim::json_text(out, 2);
  };
  const sim::AnswerForms forms{text, json, {"coverage", "reliability"}};
  return sim::print_answer(arguments, forms) ? sim::exit_ok : sim::exit_unwritten;
}

}  // namespace stepcast::validate
