#include "sim/run/recorded_ranks.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "engine/check.hpp"
#include "workloads/plan/axes.hpp"

namespace stepcast::sim {
namespace {

using Kind = RankChoice::Kind;
using workloads::GroupKind;

/// The one that computes longest; none where all compute alike.
std::optional<std::size_t> slowest_of(const std::vector<engine::RankAccount>& ranks) {
  const auto [least, most] = std::ranges::minmax_element(ranks, {}, &engine::RankAccount::compute);
  if (least == ranks.end() || least->compute == most->compute) return std::nullopt;
  const auto first = std::ranges::find(ranks, most->compute, &engine::RankAccount::compute);
  return static_cast<std::size_t>(first - ranks.begin());
}

std::vector<std::int64_t> asked_ranks(const RankChoice& choice, std::uint32_t num_ranks) {
  if (choice.kind == Kind::listed) return choice.ranks;
  std::vector<std::int64_t> all(num_ranks);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Timeline begun(const Timeline& asked) {
  Timeline out{"simulated"};
  out.sums = asked.sums;
  out.asked = asked.asked;
  return out;
}

}  // namespace

void check_ranks(const RankChoice& choice, std::uint32_t num_ranks) {
  for (const std::int64_t rank : choice.ranks)
    if (rank >= num_ranks)
      throw InputError("--timeline-ranks", "there is no rank " + std::to_string(rank),
                       "the last one is " + std::to_string(num_ranks - 1));
}

std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> receivers_among(
    const std::map<std::int64_t, std::int64_t>& shown, const engine::System& whole,
    const std::vector<std::uint32_t>& likeness) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> out;
  const auto stand_in = [&](std::int64_t rank) -> std::optional<std::int64_t> {
    if (shown.contains(rank)) return rank;
    for (const auto& [other, simulated] : shown)
      if (likeness[static_cast<std::size_t>(other)] == likeness[static_cast<std::size_t>(rank)])
        return other;
    return std::nullopt;
  };
  for (const GroupKind kind : {GroupKind::pipeline_forward, GroupKind::pipeline_backward})
    for (const auto& [rank, simulated] : shown) {
      const auto slot = static_cast<std::size_t>(workloads::slot_of(kind));
      const std::uint32_t pair = whole.communicator_of[slot][static_cast<std::size_t>(rank)];
      if (pair == engine::no_communicator) continue;
      const auto receiver = stand_in(whole.communicators[pair].members.back());
      if (receiver) out[{rank, workloads::axis_of(kind).lane}] = *receiver;
    }
  return out;
}

RecordedRanks::RecordedRanks(const workloads::StepProgram& program, const StepSystem& step,
                             Timeline& timeline, TimelineApproval approval)
    : program_(program),
      step_(step),
      timeline_(timeline = begun(timeline)),
      approval_(std::move(approval)),
      recorder_(program, timeline, step.hbm) {
  check_ranks(timeline.asked, step.system.num_ranks());
  likeness_ = step.layout->classes_of(step.system)->ranks;
}

std::vector<std::int64_t> RecordedRanks::representatives() const {
  std::vector<std::int64_t> out;
  std::set<std::uint32_t> known;
  for (std::size_t rank = 0; rank < likeness_.size(); ++rank)
    if (known.insert(likeness_[rank]).second) out.push_back(static_cast<std::int64_t>(rank));
  return out;
}

void RecordedRanks::know_slowest(const engine::RunResult& result) {
  timeline_.slowest = slowest_of(result.ranks);
}

engine::TimelineSink* RecordedRanks::of_all() {
  const std::uint32_t num_ranks = step_.system.num_ranks();
  const bool alike = !step_.system.jitter.on();
  if (alike) likeness_ = step_.layout->classes_of(step_.system)->ranks;
  const bool some = asks_for_slowest();
  std::vector<std::int64_t> ranks =
      some ? representatives() : asked_ranks(timeline_.asked, num_ranks);
  if (some && timeline_.slowest && std::ranges::count(ranks, *timeline_.slowest) == 0)
    ranks.push_back(*timeline_.slowest);
  approve(ranks);
  std::vector<bool> only(num_ranks);
  for (const std::int64_t rank : ranks) {
    const auto at = static_cast<std::size_t>(rank);
    only[at] = true;
    timeline_.ranks[rank] = some && alike ? std::ranges::count(likeness_, likeness_[at]) : 1;
  }
  if (timeline_.asked.kind != Kind::simulated) recorder_.record_only(std::move(only));
  timeline_.receivers = receivers_among(timeline_.to_show(), step_.system, likeness_);
  return &recorder_;
}

engine::TimelineSink* RecordedRanks::of_folded(const engine::Fold& fold) {
  const std::vector<std::uint32_t> first = fold.first();
  for (std::size_t folded = 0; folded < first.size(); ++folded)
    timeline_.ranks[first[folded]] = fold.multiplicity[folded];
  if (timeline_.asked.kind == Kind::listed || timeline_.asked.kind == Kind::all)
    for (const std::int64_t rank : asked_ranks(timeline_.asked, step_.system.num_ranks()))
      timeline_.shown[rank] = first[fold.representative[static_cast<std::size_t>(rank)]];
  std::vector<std::int64_t> shown;
  for (const auto& [rank, simulated] : timeline_.to_show()) shown.push_back(rank);
  approve(shown);
  timeline_.receivers = receivers_among(timeline_.to_show(), step_.system, likeness_);
  return &recorder_;
}

void RecordedRanks::name(const engine::Fold& fold, const engine::RunResult& result) {
  const std::vector<std::uint32_t> first = fold.first();
  for (TimelineEvent& e : timeline_.events) e.rank = first[static_cast<std::size_t>(e.rank)];
  if (const auto slowest = slowest_of(result.ranks)) timeline_.slowest = first[*slowest];
}

void RecordedRanks::approve(const std::vector<std::int64_t>& shown) const {
  if (!approval_) return;
  TimelineSize size;
  size.all_ranks = step_.system.num_ranks();
  for (const std::int64_t rank : shown) {
    const std::uint32_t role = step_.system.role_of_rank[static_cast<std::size_t>(rank)];
    ++size.ranks;
    engine::each_call(program_.roles[role], [&](const engine::Instruction& i, std::int64_t times) {
      const bool join = i.op == engine::Op::join;
      if (i.op != engine::Op::work && !join) return;
      const std::string& name =
          join ? program_.collectives[i.arg].name : program_.kernels[i.arg].name;
      size.events += times;
      size.name_bytes += times * std::ssize(name);
    });
  }
  approval_(size);
}

}  // namespace stepcast::sim
