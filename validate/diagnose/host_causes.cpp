// Time in which no kernel runs, and waiting for ranks that come late because of it.
#include <fmt/format.h>

#include <algorithm>

#include "validate/diagnose/attribution.hpp"

namespace stepcast::validate {
namespace {

/// Ranks on which this idle time is longer than expected by half of what it is on the place's.
std::vector<std::int64_t> where(const Inquest& run, std::size_t place, double RankParts::*idle) {
  const double here = run.measured[place].*idle - run.should(place).*idle;
  std::vector<std::int64_t> out;
  for (std::size_t r = 0; r < run.measured.size(); ++r)
    if (run.measured[r].*idle - run.should(r).*idle > 0.5 * here)
      out.push_back(run.measured[r].rank);
  const bool all = out.size() == run.measured.size();
  return all && run.measured.size() > 1 ? std::vector<std::int64_t>{} : out;
}

struct IdleCause {
  CauseKind kind;
  double RankParts::*measured;
  double Ledger::*left;
  const char* what;
};
constexpr IdleCause idle_causes[] = {
    {CauseKind::data_loader, &RankParts::boundary, &Ledger::boundary,
     "no kernel runs between two steps"},
    {CauseKind::host_pause, &RankParts::pauses, &Ledger::pauses, "no kernel runs in long gaps"},
    {CauseKind::host_bound, &RankParts::gaps, &Ledger::gaps,
     "no kernel runs in gaps between launches"},
};

Cause idle_cause(const Inquest& run, const IdleCause& one, std::size_t place, double seconds) {
  const double measured = run.measured[place].*one.measured,
               expected = run.should(place).*one.measured;
  Cause out{one.kind, seconds,
            fmt::format("{}: {} a step on rank {}, {} are expected", one.what,
                        milliseconds(measured), run.measured[place].rank, milliseconds(expected)),
            Surety::sure, where(run, place, one.measured)};
  if (one.kind == CauseKind::host_pause)
    out.evidence +=
        fmt::format("; the longest {}", milliseconds(run.measured[place].longest_pause));
  if (one.kind == CauseKind::host_bound) out.surety = run.beside_forecast(seconds);
  return out;
}

/// What made a late rank late: its own time beyond the expected.
std::optional<Cause> lateness(const Inquest& run, std::size_t late, double seconds) {
  const IdleCause* worst = nullptr;
  double most = run.noise;
  for (const IdleCause& one : idle_causes) {
    const double more = run.measured[late].*one.measured - run.should(late).*one.measured;
    if (more > most) most = more, worst = &one;
  }
  if (worst == nullptr) return std::nullopt;
  return idle_cause(run, *worst, late, seconds);
}

/// To a cause of the same kind that is there already, or as a new one.
void add(Inquest& run, Cause cause) {
  for (Cause& there : run.causes) {
    if (there.kind != cause.kind) continue;
    there.seconds += cause.seconds;
    if (there.ranks.empty()) return;
    for (const std::int64_t rank : cause.ranks)
      if (std::ranges::count(there.ranks, rank) == 0) there.ranks.push_back(rank);
    std::ranges::sort(there.ranks);
    return;
  }
  run.causes.push_back(std::move(cause));
}

}  // namespace

void find_launch_blocking(Inquest& run) {
  constexpr double nearly_all = 0.85, many_more = 0.25, no_overlap = 0.02;
  const RankParts &m = run.mine(), &e = run.should();
  const bool apart = m.behind_a_gap > nearly_all && m.behind_a_gap > e.behind_a_gap + many_more;
  if (!apart || m.under_compute > no_overlap || run.left.gaps < run.noise) return;
  Cause cause{CauseKind::launch_blocking};
  // Kernels alone are not slowed by collectives beside them, but collectives hide behind nothing.
  for (auto& [kind, seconds] : run.left.moves) cause.seconds += taken(seconds);
  for (auto& [kind, seconds] : run.left.slower)
    if (seconds < 0) cause.seconds += taken(seconds);
  for (double* part : {&run.left.gaps, &run.left.pauses, &run.left.boundary, &run.left.at_once,
                       &run.left.wait, &run.left.rest})
    cause.seconds += taken(*part);
  cause.surety = Surety::sure;
  cause.evidence = fmt::format(
      "{:.0f} % of the kernels begin on an idle GPU, {:.0f} % are expected; of communication "
      "{:.0f} % runs beside compute, {:.0f} % are expected",
      100 * m.behind_a_gap, 100 * e.behind_a_gap, 100 * m.under_compute, 100 * e.under_compute);
  run.causes.push_back(std::move(cause));
}

void find_host(Inquest& run) {
  // A host that is late between launches is late between steps as well.
  constexpr double as_well = 0.3;
  if (run.left.gaps > run.noise && run.left.gaps > as_well * run.left.boundary)
    run.left.gaps += taken(run.left.boundary);
  for (const IdleCause& one : idle_causes) {
    double& amount = run.left.*one.left;
    if (amount < run.noise) continue;
    run.causes.push_back(idle_cause(run, one, run.place, taken(amount)));
  }
}

void find_waiting(Inquest& run) {
  if (run.left.wait < run.noise) return;
  const RankParts& mine = run.mine();
  double all = 0, top = 0, explained = 0;
  for (const auto& [place, seconds] : mine.waited_for) all += seconds, top = std::max(top, seconds);
  if (all <= 0) return;
  const double wait = run.left.wait;
  for (const auto& [place, seconds] : mine.waited_for)
    if (auto cause = lateness(run, place, wait * seconds / all)) {
      explained += cause->seconds;
      add(run, std::move(*cause));
    }
  run.left.wait -= explained;
  // Where many come last in turn, it is the spread of kernels' times and nobody's fault.
  constexpr double one_of_them = 0.25;
  if (run.left.wait < run.noise || top < one_of_them * all) return;
  const auto latest =
      std::ranges::max_element(mine.waited_for, {}, [](const auto& one) { return one.second; });
  run.causes.push_back(
      {CauseKind::waiting,
       taken(run.left.wait),
       fmt::format("rank {} waits {} a step, {} are expected; rank {} comes last "
                   "most often",
                   mine.rank, milliseconds(mine.wait), milliseconds(run.should().wait),
                   run.measured[latest->first].rank),
       Surety::possible,
       {run.measured[latest->first].rank}});
}

}  // namespace stepcast::validate
