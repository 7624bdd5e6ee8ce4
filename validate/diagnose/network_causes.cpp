// Transfers: slower ones between some nodes, everywhere, or as under another setting of NCCL.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/arithmetic.hpp"
#include "sim/files/names.hpp"
#include "sim/inputs/launch_facts.hpp"
#include "validate/diagnose/attribution.hpp"

namespace stepcast::validate {
namespace {

constexpr double clearly_slower =
    1.1;  // than expected: more than NCCL's own forecasts are off in sum

/// Time of alike transfers over the expected one, at the same bytes where both say them.
struct SlowExchange {
  ExchangeKind kind;
  double ratio = 1;
  double seconds = 0;  // expected
};

std::vector<SlowExchange> ratios_of(const std::map<ExchangeKind, ExchangeTally>& measured,
                                    const std::map<ExchangeKind, ExchangeTally>& expected) {
  std::vector<SlowExchange> out;
  for (const auto& [kind, m] : measured) {
    const auto at = expected.find(kind);
    if (at == expected.end() || at->second.seconds <= 0 || m.seconds <= 0) continue;
    const ExchangeTally& e = at->second;
    const double scale = m.bytes > 0 && e.bytes > 0 ? m.bytes / e.bytes : 1;
    out.push_back({kind, m.seconds / e.seconds / scale, e.seconds});
  }
  return out;
}

/// Mean distance of ln(measured / predicted), each kind by its time.
double distance(const std::vector<SlowExchange>& ratios) {
  double sum = 0, weight = 0;
  for (const SlowExchange& one : ratios) {
    sum += one.seconds * std::abs(std::log(one.ratio));
    weight += one.seconds;
  }
  return weight > 0 ? sum / weight : 0;
}

struct Variable {
  const char *name, *value;
};
constexpr Variable nccl_variables[] = {
    {"NCCL_PROTO", "LL"},  {"NCCL_PROTO", "LL128"}, {"NCCL_PROTO", "Simple"},
    {"NCCL_ALGO", "Ring"}, {"NCCL_ALGO", "Tree"},   {"NCCL_P2P_DISABLE", "1"},
};

struct Explanation {
  Variable variable{};
  double distance = 0;
};

/// The variable under which transfers take what was measured; none where no one does.
std::optional<Explanation> explaining_variable(const Inquest& run) {
  constexpr double nearer = 0.35, near = 0.1;  // than the forecast without it; of each transfer
  const double now = distance(ratios_of(run.mine().exchanges, run.should().exchanges));
  std::optional<Explanation> out;
  for (const Variable& variable : nccl_variables) {
    const auto predicted = run.under(variable.name, variable.value);
    if (!predicted) continue;
    const double there = distance(ratios_of(run.mine().exchanges, *predicted));
    if (there < nearer * now && there < near && (!out || there < out->distance))
      out = Explanation{variable, there};
  }
  return out;
}

/// Ranks of the groups whose transfers take longer than those of other groups of the kind; none
/// where all groups are as slow.
std::vector<std::int64_t> slow_groups(const Inquest& run, const ExchangeKind& kind) {
  constexpr double apart = 1.25;
  std::map<std::string, double> each;
  for (const RankParts& rank : run.measured)
    for (const auto& [group, tally] : rank.groups)
      if (group.first == kind) each[group.second] = std::max(each[group.second], tally.each());
  std::vector<double> all;
  for (const auto& [members, seconds] : each) all.push_back(seconds);
  if (all.size() < 2) return {};
  const double middle = median(std::move(all));
  std::set<std::int64_t> ranks;
  for (const auto& [members, seconds] : each)
    if (seconds > apart * middle)
      for (const std::int64_t rank : sim::numbers_in(members)) ranks.insert(rank);
  return {ranks.begin(), ranks.end()};
}

std::string exchange_text(const Inquest& run, const ExchangeKind& kind) {
  return fmt::format("{} of {} ranks {}", sim::word_for(sim::collective_names, kind.kind),
                     kind.ranks,
                     run.expected.between_nodes.contains(kind) ? "between nodes" : "inside a node");
}

/// Transfers that take longer slow the kernels beside them for longer, by no more than they are.
void take_slowed_kernels(Inquest& run, Cause& cause) {
  const auto beside = [](const RankParts& rank) { return rank.communicating * rank.under_compute; };
  const double longer = beside(run.mine()) - beside(run.should());
  const double slower = sum_of(run.left.slower);
  if (slower < run.noise || slower > longer) return;
  for (auto& [kind, seconds] : run.left.slower) cause.seconds += taken(seconds);
  cause.evidence += fmt::format("; kernels beside them take {} longer", milliseconds(slower));
}

}  // namespace

void find_slow_network(Inquest& run) {
  std::vector<SlowExchange> slow = ratios_of(run.mine().exchanges, run.should().exchanges);
  std::erase_if(slow, [](const SlowExchange& one) { return one.ratio < clearly_slower; });
  double exposed = 0;
  for (const SlowExchange& one : slow) exposed += run.left.moves[one.kind];
  // What is hidden does not lengthen the step, but for messages that the next stage waits for.
  if (slow.empty() || exposed < run.noise) return;
  const auto worst = std::ranges::max_element(
      slow, {}, [](const SlowExchange& one) { return one.seconds * (one.ratio - 1); });
  Cause cause{CauseKind::slow_link};
  for (const SlowExchange& one : slow) cause.seconds += taken(run.left.moves[one.kind]);
  cause.surety = run.waiting_known ? run.beside_forecast(cause.seconds) : Surety::possible;
  cause.evidence = fmt::format("{} takes {:.2f} times as long as expected",
                               exchange_text(run, worst->kind), worst->ratio);
  for (const SlowExchange& one : slow)
    if (&one != &*worst)
      cause.evidence += fmt::format(", {} {:.2f}", exchange_text(run, one.kind), one.ratio);
  if (!run.waiting_known) {
    cause.kind = CauseKind::waiting;
    cause.evidence += "; of one rank alone, waiting for peers is in it";
    cause.how = "give the traces of all ranks of a group: then moving is told from waiting";
    run.causes.push_back(std::move(cause));
    return;
  }
  take_slowed_kernels(run, cause);
  if (const auto found = explaining_variable(run)) {
    const auto& [name, value] = found->variable;
    cause.kind = CauseKind::wrong_protocol;
    cause.how = fmt::format("{}={} would explain it", name, value);
    cause.evidence += fmt::format("; under {}={} these times would be expected to {:.0f} %", name,
                                  value, 100 * found->distance);
    cause.surety = Surety::likely;
    if (std::ranges::all_of(run.mine().exchanges, [&](const auto& one) {
          return run.expected.between_nodes.contains(one.first);
        })) {
      cause.surety = Surety::possible;
      cause.how += "; so would slow links: no collective inside a node tells them apart";
    }
  } else {
    cause.ranks = slow_groups(run, worst->kind);
    if (!cause.ranks.empty()) cause.evidence += "; other groups of the same kind are faster";
  }
  run.causes.push_back(std::move(cause));
}

}  // namespace stepcast::validate
