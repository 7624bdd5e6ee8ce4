// One step as a page to hand on: what is simulated for it beside the answer, and the page.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "sim/handout/handout.hpp"
#include "sim/handout/stage_times.hpp"
#include "sim/run/session.hpp"
#include "sim/told/memory_timeline.hpp"
#include "sim/told/search.hpp"
#include "sim/why/why.hpp"

namespace stepcast::sim {

struct StepHandout {
  StepReport report;
  std::optional<Why> why{};
  std::vector<StageTimes> stages{};
  Timeline timeline{};
  std::optional<SearchAnswer> search{};
  std::optional<KnobValues> knobs{};  // the plan of `report` in it
  std::vector<StageMemory> memory{};
  std::vector<std::string> missing{};  // "the critical path: reason"
};

struct StepHandoutOptions {
  bool alternatives = true;  // a search of at most `simulations` plans
  std::size_t simulations = 40;
  unsigned threads = 1;
};

/// `report` is an answer. What cannot be had is named in `missing`.
StepHandout step_handout(const StepReport& report, Session& session,
                         const StepHandoutOptions& options, const std::atomic<bool>& stop);

Told step_page(const StepHandout& handout, const Catalogue& catalogue, const Origin& origin);

/// The plan of a scenario that has no answer: why, and what it needs.
Told refused_page(const Scenario& scenario, const std::string& reason, const Catalogue& catalogue,
                  const Origin& origin);

/// The best plan of a search as such a page; where there is none, why.
Told search_page(const SearchAnswer& answer, Session& session, const Origin& origin,
                 const std::atomic<bool>& stop);

// Sections and phrases that other pages have as well.

/// Plans of a search: how sure it is that none is better, the picture, the table.
ToldSection search_section(const SearchAnswer& answer);
/// For whoever pays.
ToldSection glance_section(const StepHandout& handout);
/// Where the step's time goes, stage by stage; the critical path and what would move it; memory;
/// the pipeline; collectives; what the times rest on.
std::vector<ToldSection> engineer_sections(const StepHandout& handout);
/// "12.3 days (10.9 to 14.1)": the band below the figure.
KeyFigure banded_figure(const std::string& label, const std::string& text,
                        const std::string& note = {});
/// Means over all ranks.
StageTimes times_of(const StepReport& report);
/// A sentence: how far such forecasts lie off.
std::string confidence_text(const StepReport& report);

}  // namespace stepcast::sim
