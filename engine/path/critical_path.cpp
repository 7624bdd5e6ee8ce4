#include "engine/path/critical_path.hpp"

#include <algorithm>

#include "engine/check.hpp"
#include "engine/fluid.hpp"

namespace stepcast::engine {
namespace {

PathEdge::Kind kind_of(const StepLog& log, const Instant& instant) {
  if (instant.kind != Instant::Kind::passed) return PathEdge::Kind::host;
  return log.call(instant.call).what.op == Op::work ? PathEdge::Kind::kernel
                                                    : PathEdge::Kind::transfer;
}

class Walk {
 public:
  Walk(const StepLog& log, Time begin, Duration near)
      : log_(log), instants_(log), begin_(begin), near_(near) {}

  CriticalPath from(Instant at) {
    while (instants_.time_of(at) > begin_) {
      const std::vector<Instant> causes = instants_.causes(at);
      const Instant cause = instants_.latest(causes);
      note_ties(at, cause, causes);
      if (instants_.ends_edge(at)) add_edge(at, cause);
      at = cause;
    }
    std::ranges::reverse(out_.edges);
    std::ranges::stable_sort(out_.near, {}, &NearTie::slack);
    return std::move(out_);
  }

 private:
  void note_ties(const Instant& at, const Instant& cause, const std::vector<Instant>& causes) {
    bool tied = false;
    for (const Instant& other : causes) {
      if (other == cause) continue;
      const Duration slack = instants_.time_of(cause) - instants_.time_of(other);
      tied = tied || slack == Duration{};
      if (slack <= near_) out_.near.push_back({at, other, slack});
    }
    out_.ties += tied;
  }

  void add_edge(const Instant& at, const Instant& cause) {
    PathEdge edge{.kind = kind_of(log_, at),
                  .call = at.call,
                  .launches = at.kind == Instant::Kind::launched,
                  .epoch = at.epoch,
                  .from = std::max(instants_.time_of(cause), begin_),
                  .to = instants_.time_of(at),
                  .after = cause};
    if (edge.launches) edge.epoch = log_.epoch_of(at.call);
    if (edge.length() == Duration{}) return;
    if (edge.kind == PathEdge::Kind::kernel) edge.extra = interference(edge);
    if (edge.kind == PathEdge::Kind::transfer) edge.extra = sharing(edge);
    edge.extra = std::clamp(edge.extra, Duration{}, edge.length());
    out_.edges.push_back(edge);
  }

  /// Longer than alone: in a state that stretches by s, 1 - 1/s of the time.
  Duration interference(const PathEdge& edge) const {
    const System& system = log_.system();
    const std::size_t row =
        std::size_t{system.works[log_.call(edge.call).what.arg].profile} * num_states;
    double extra = 0.0;
    const std::span<const Beside> beside = log_.beside_of(edge.call);
    for (std::size_t b = 0; b < beside.size(); ++b) {
      const Time to = b + 1 < beside.size() ? beside[b + 1].from : edge.to;
      const Time from = std::max(beside[b].from, edge.from);
      if (to > from)
        extra += seconds(to - from) * (1.0 - 1.0 / system.stretch[row + beside[b].state]);
    }
    return to_duration(extra);
  }

  Duration sharing(const PathEdge& edge) const {
    const System& system = log_.system();
    const Transfer& transfer = log_.transfer_of(edge.call);
    const Communicator& communicator = system.communicators[log_.communicator_of(edge.call)];
    const Time alone =
        end_alone(Time{}, transfer.bytes, transfer.cap, communicator.loads, system.link_capacity);
    return edge.length() - alone.time_since_epoch();
  }

  const StepLog& log_;
  const Instants instants_;
  const Time begin_;
  const Duration near_;
  CriticalPath out_;
};

}  // namespace

Duration CriticalPath::length() const {
  Duration sum{};
  for (const PathEdge& edge : edges) sum += edge.length();
  return sum;
}

CriticalPath critical_path(const StepLog& log, Duration step, Duration near) {
  const StepLog::Boundary end = log.boundary(log.last_step());
  const StepLog::Boundary begin = log.boundary(log.last_step() - 1);
  CriticalPath path =
      Walk(log, begin.when, near).from({Instant::Kind::passed, end.last.front(), 0});
  path.ends = std::ssize(end.last);
  ensures(path.length() == step, "the edges of the critical path sum to the step");
  return path;
}

}  // namespace stepcast::engine
