#include "engine/path/slopes.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "engine/check.hpp"
#include "engine/path/instants.hpp"
#include "engine/path/shared_rates.hpp"

namespace stepcast::engine {
namespace {

constexpr double negligible = 1e-12;  // weights below are rounding

class BackwardPass {
 public:
  explicit BackwardPass(const StepLog& log) : log_(log), instants_(log), rates_(log) {
    const System& s = log.system();
    out_.works.resize(s.works.size());
    out_.stretch.resize(s.stretch.size());
    out_.host_costs.resize(s.host_costs.size());
    out_.bytes.resize(s.transfers.size());
    out_.caps.resize(s.transfers.size());
    out_.capacities.resize(s.link_capacity.size());
    for (const Communicator& c : s.communicators) out_.weights.emplace_back(c.loads.size());
    launches_.resize(s.roles.size());
    for (std::uint32_t r = 0; r < s.num_ranks(); ++r)
      if (rank_of_role_.emplace(s.role_of_rank[r], r).second)
        launches_[s.role_of_rank[r]].resize(log.calls_of(r).calls.size());
  }

  Slopes run() {
    push_boundary(log_.last_step(), 1.0);
    push_boundary(log_.last_step() - 1, -1.0);
    while (!open_.empty()) {
      const auto last = std::prev(open_.end());
      const Instant at = last->first.second;
      const double weight = last->second;
      open_.erase(last);
      if (std::abs(weight) > negligible) pull(at, weight);
    }
    sum_launches();
    return std::move(out_);
  }

 private:
  void push_boundary(std::int64_t step, double weight) {
    const StepLog::Boundary boundary = log_.boundary(step);
    if (!boundary.last.empty()) push({Instant::Kind::passed, boundary.last.front(), 0}, weight);
  }

  /// All members pass a transfer at once: the first stands for them.
  void push(Instant at, double weight) {
    if (at.kind == Instant::Kind::begin) return;
    if (at.kind == Instant::Kind::passed && log_.call(at.call).what.op == Op::join)
      at.call = end_of(log_.communicator_of(at.call), log_.turn_of(at.call));
    open_[{instants_.time_of(at), at}] += weight;
  }

  LaneCall end_of(std::uint32_t communicator, std::int64_t turn) const {
    const std::uint32_t rank = log_.system().communicators[communicator].members.front();
    return log_.join_of(rank, communicator, turn);
  }

  void pull(const Instant& at, double weight) {
    const std::vector<Instant> causes = instants_.causes(at);
    if (causes.empty()) return;
    const Instant cause = instants_.latest(causes);
    if (!instants_.ends_edge(at)) {
      push(cause, weight);
    } else if (at.kind != Instant::Kind::passed) {
      pull_host(at, cause, weight);
    } else if (log_.call(at.call).what.op == Op::work) {
      pull_kernel(at.call, cause, weight);
    } else {
      pull_transfer(at.call, cause, weight);
    }
  }

  /// What a steady run has launched when it enters costs it nothing.
  void pull_host(const Instant& at, const Instant& cause, double weight) {
    const std::uint32_t rank = at.call.rank;
    if (log_.is_entry_epoch(rank, cause.epoch)) return;
    const StepCalls& calls = log_.calls_of(rank);
    std::size_t call = calls.calls.size() - 1;
    if (at.kind == Instant::Kind::launched) {
      call = log_.index(at.call);
    } else if (const auto e = static_cast<std::size_t>(at.epoch % calls.num_epochs());
               e < calls.host_waits.size()) {
      call = calls.host_waits[e];
    }
    // The host may launch nothing after its last wait.
    if (calls.calls[call].epoch == cause.epoch % calls.num_epochs())
      launches_[log_.system().role_of_rank[rank]][call] += weight;
    push(cause, weight);
  }

  /// A call is launched after all those before it in its epoch.
  void sum_launches() {
    for (std::uint32_t role = 0; role < launches_.size(); ++role) {
      double sum = 0.0;
      for (std::size_t c = launches_[role].size(); c-- > 0;) {
        const StepCall& call = log_.calls_of(rank_of_role_.at(role)).calls[c];
        if (call.what.op == Op::host_wait) sum = 0.0;
        sum += launches_[role][c];
        out_.host_costs[call.what.host_cost] += sum;
      }
    }
  }

  void pull_kernel(const LaneCall& call, const Instant& cause, double weight) {
    const System& s = log_.system();
    const std::uint32_t work = log_.call(call).what.arg;
    const double slowness = s.slowness.empty() ? 1.0 : s.slowness[call.rank];
    const std::span<const Beside> beside = log_.beside_of(call);
    const std::size_t row = std::size_t{s.works[work].profile} * num_states;
    const Time begin = instants_.time_of(cause), end = log_.clock(call);
    const double last = beside.empty() ? 1.0 : s.stretch[row + beside.back().state];
    std::uint32_t state = 0;
    Time from = begin;
    for (const Beside& next : beside) {
      const double before = s.stretch[row + state], after = s.stretch[row + next.state];
      if (next.from > begin) {
        out_.stretch[row + state] += weight * last * seconds(next.from - from) / (before * before);
        if (before != after)
          push(change_at(call.rank, next.from), weight * last * (1 / after - 1 / before));
      }
      state = next.state;
      from = std::max(begin, next.from);
    }
    out_.stretch[row + state] += weight * seconds(end - from) / last;
    out_.works[work] += weight * last * slowness;
    push(cause, weight * last / first_stretch(beside, row, begin));
  }

  double first_stretch(std::span<const Beside> beside, std::size_t row, Time begin) const {
    std::uint32_t state = 0;
    for (const Beside& b : beside)
      if (b.from <= begin) state = b.state;
    return log_.system().stretch[row + state];
  }

  /// What began or ended beside the compute lane just then.
  Instant change_at(std::uint32_t rank, Time when) const {
    const StepCalls& calls = log_.calls_of(rank);
    for (std::uint8_t lane = 1; lane < calls.lanes.size(); ++lane) {
      LaneCall call = log_.first_after(rank, lane, when);
      if (log_.was_run(call)) {
        const Op op = log_.call(call).what.op;
        if ((op == Op::work || op == Op::join) && log_.ready(call) == when)
          return {Instant::Kind::ready, call, 0};
        if (op == Op::join) {
          const Instant start =
              instants_.latest(instants_.causes({Instant::Kind::passed, call, 0}));
          if (instants_.time_of(start) == when) return start;
        }
      }
      for (--call.number; log_.in_run(call) && log_.clock(call) == when; --call.number) {
        const Op op = log_.call(call).what.op;
        if (op == Op::work || op == Op::join) return {Instant::Kind::passed, call, 0};
      }
    }
    throw BrokenPromise("something changes beside a kernel");
  }

  void pull_transfer(const LaneCall& join, const Instant& cause, double weight) {
    const std::uint32_t c = log_.communicator_of(join);
    const std::int64_t turn = log_.turn_of(join);
    const std::size_t transfer = transfer_index(c, turn);
    const std::vector<RatePiece> pieces = rates_.pieces(c, turn);
    if (pieces.empty()) return push(cause, weight);  // nothing to move
    const double last = pieces.back().flows.front().rate.value;
    out_.bytes[transfer] += weight / last;
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      const RatePiece& piece = pieces[p];
      pull_rate(piece, 0, -weight * seconds(piece.to - piece.from) / last);
      if (p + 1 == pieces.size()) break;
      const double change = pieces[p + 1].flows.front().rate.value - piece.flows.front().rate.value;
      if (change != 0.0) push(switch_between(piece, pieces[p + 1]), weight * change / last);
    }
    push(cause, weight * pieces.front().flows.front().rate.value / last);
  }

  std::size_t transfer_index(std::uint32_t c, std::int64_t turn) const {
    const System& s = log_.system();
    return std::size_t{log_.call(end_of(c, turn)).what.arg} * s.num_patterns +
           s.communicators[c].pattern;
  }

  /// `weight` on the rate of a flow goes to what decides it.
  void pull_rate(const RatePiece& piece, std::size_t flow, double weight) {
    if (std::abs(weight * piece.flows[flow].rate.value) < negligible * negligible) return;
    const std::vector<Hold> holds = rates_.hold(piece, flow);
    if (holds.empty()) {
      const Flowing& free = piece.flows[flow];
      out_.caps[transfer_index(free.communicator, free.turn)] += weight;
      return;
    }
    const Hold& hold = holds.front();
    const double share = weight / hold.weight;
    out_.capacities[hold.link] += share;
    for (const std::size_t f : hold.frozen) pull_weight(piece.flows[f], hold.link, share);
    for (const std::size_t f : hold.others) {
      pull_weight(piece.flows[f], hold.link, share);
      pull_rate(piece, f, -share * rates_.weight_on(piece.flows[f].communicator, hold.link));
    }
  }

  void pull_weight(const Flowing& flow, std::uint32_t link, double share) {
    const std::vector<LinkLoad>& loads = log_.system().communicators[flow.communicator].loads;
    for (std::size_t l = 0; l < loads.size(); ++l)
      if (loads[l].link == link) out_.weights[flow.communicator][l] -= share * flow.rate.value;
  }

  /// The start or the end of another transfer that changed the rate of the first flow.
  Instant switch_between(const RatePiece& before, const RatePiece& after) const {
    const auto is_in = [](const RatePiece& piece, const Flowing& flow) {
      return std::ranges::any_of(piece.flows, [&](const Flowing& other) {
        return other.communicator == flow.communicator && other.turn == flow.turn;
      });
    };
    for (const Flowing& flow : before.flows)
      if (!is_in(after, flow))
        return {Instant::Kind::passed, end_of(flow.communicator, flow.turn), 0};
    for (const Flowing& flow : after.flows)
      if (!is_in(before, flow))
        return instants_.latest(
            instants_.causes({Instant::Kind::passed, end_of(flow.communicator, flow.turn), 0}));
    throw BrokenPromise("a rate changes when a transfer starts or ends");
  }

  const StepLog& log_;
  const Instants instants_;
  const SharedRates rates_;
  Slopes out_;
  std::map<std::pair<Time, Instant>, double> open_;  // by time: the last comes first
  std::vector<std::vector<double>> launches_;        // [role][call]
  std::map<std::uint32_t, std::uint32_t> rank_of_role_;
};

}  // namespace

Slopes slopes(const StepLog& log) { return BackwardPass(log).run(); }

double first_order(const Slopes& slopes, const System& system, const System& changed) {
  expects(system.works.size() == changed.works.size() &&
              system.transfers.size() == changed.transfers.size() &&
              system.link_capacity.size() == changed.link_capacity.size() &&
              system.communicators.size() == changed.communicators.size(),
          "systems of the same make");
  double sum = 0.0;
  for (std::size_t w = 0; w < system.works.size(); ++w)
    sum +=
        slopes.works[w] * (seconds(changed.works[w].duration) - seconds(system.works[w].duration));
  for (std::size_t i = 0; i < system.stretch.size(); ++i)
    sum += slopes.stretch[i] * (changed.stretch[i] - system.stretch[i]);
  for (std::size_t h = 0; h < system.host_costs.size(); ++h)
    sum += slopes.host_costs[h] * seconds(changed.host_costs[h] - system.host_costs[h]);
  for (std::size_t t = 0; t < system.transfers.size(); ++t) {
    sum += slopes.bytes[t] * (changed.transfers[t].bytes - system.transfers[t].bytes);
    sum += slopes.caps[t] * (changed.transfers[t].cap.value - system.transfers[t].cap.value);
  }
  for (std::size_t l = 0; l < system.link_capacity.size(); ++l)
    sum += slopes.capacities[l] * (changed.link_capacity[l].value - system.link_capacity[l].value);
  for (std::size_t c = 0; c < system.communicators.size(); ++c)
    for (std::size_t l = 0; l < system.communicators[c].loads.size(); ++l)
      sum += slopes.weights[c][l] *
             (changed.communicators[c].loads[l].weight - system.communicators[c].loads[l].weight);
  return sum;
}

}  // namespace stepcast::engine
