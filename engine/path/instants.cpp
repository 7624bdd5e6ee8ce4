#include "engine/path/instants.hpp"

#include <algorithm>

#include "engine/check.hpp"

namespace stepcast::engine {

Instant Instants::passed(const LaneCall& call) const {
  if (!log_.in_run(call)) return {};
  return {Instant::Kind::passed, call, 0};
}

Instant Instants::recorded(std::uint32_t rank, std::uint32_t event, std::int64_t step) const {
  const LaneCall record = log_.recorder(rank, event, step);
  if (!log_.in_run(record)) return {};
  return {Instant::Kind::ready, record, 0};
}

Instant Instants::epoch(std::uint32_t rank, std::int64_t epoch) const {
  return {Instant::Kind::epoch, {rank, 0, 0}, epoch};
}

Time Instants::time_of(const Instant& instant) const {
  const LaneCall& call = instant.call;
  switch (instant.kind) {
    case Instant::Kind::begin:
      return Time{};
    case Instant::Kind::passed:
      return log_.clock(call);
    case Instant::Kind::ready:
      return log_.ready(call);
    case Instant::Kind::launched:
      return log_.launch(call);
    case Instant::Kind::host_done: {
      const StepCalls& calls = log_.calls_of(call.rank);
      const auto e = static_cast<std::uint32_t>(instant.epoch % calls.num_epochs());
      const Duration length =
          e < calls.host_waits.size() ? calls.calls[calls.host_waits[e]].launch : calls.last_epoch;
      return log_.epoch_begin(call.rank, instant.epoch) + length;
    }
    case Instant::Kind::epoch:
      return log_.epoch_begin(call.rank, instant.epoch);
  }
  throw BrokenPromise("unknown instant");
}

bool Instants::ends_edge(const Instant& instant) const {
  if (instant.kind == Instant::Kind::launched || instant.kind == Instant::Kind::host_done)
    return true;
  if (instant.kind != Instant::Kind::passed) return false;
  const Op op = log_.call(instant.call).what.op;
  return op == Op::work || op == Op::join;
}

std::vector<Instant> Instants::causes(const Instant& instant) const {
  const LaneCall& call = instant.call;
  switch (instant.kind) {
    case Instant::Kind::begin:
      return {};
    case Instant::Kind::passed:
      return causes_of_passed(call);
    case Instant::Kind::ready:
      return {passed({call.rank, call.lane, call.number - 1}), {Instant::Kind::launched, call, 0}};
    case Instant::Kind::launched:
      return {epoch(call.rank, log_.epoch_of(call))};
    case Instant::Kind::host_done:
      return {epoch(call.rank, instant.epoch)};
    case Instant::Kind::epoch:
      return causes_of_epoch(instant);
  }
  throw BrokenPromise("unknown instant");
}

std::vector<Instant> Instants::causes_of_passed(const LaneCall& call) const {
  const Instant before = passed({call.rank, call.lane, call.number - 1});
  switch (log_.call(call).what.op) {
    case Op::work:
      return {{Instant::Kind::ready, call, 0}};
    case Op::wait:
      return {before, recorded(call.rank, log_.call(call).what.arg, log_.step_of(call))};
    case Op::join: {
      std::vector<Instant> out{{Instant::Kind::ready, call, 0}};
      const std::uint32_t c = log_.communicator_of(call);
      const std::int64_t turn = log_.turn_of(call);
      for (const std::uint32_t rank : log_.system().communicators[c].members)
        if (rank != call.rank)
          out.push_back({Instant::Kind::ready, log_.join_of(rank, c, turn), 0});
      return out;
    }
    case Op::record:
    case Op::mark:
      return {before};
    case Op::host_wait:
    case Op::host_work:
      break;
  }
  throw BrokenPromise("a lane has no calls of the host");
}

/// The host goes on when it has launched all and what it waits for has happened; into a step, once
/// every lane has entered the one before.
std::vector<Instant> Instants::causes_of_epoch(const Instant& instant) const {
  const std::uint32_t rank = instant.call.rank;
  if (!log_.epoch_in_run(rank, instant.epoch - 1)) return {};
  std::vector<Instant> out{{Instant::Kind::host_done, {rank, 0, 0}, instant.epoch - 1}};
  const StepCalls& calls = log_.calls_of(rank);
  const std::int64_t step = instant.epoch / calls.num_epochs();
  const std::int64_t e = instant.epoch % calls.num_epochs();
  if (e > 0) {
    const StepCall& wait = calls.calls[calls.host_waits[static_cast<std::size_t>(e - 1)]];
    out.push_back(recorded(rank, wait.what.arg, step));
    return out;
  }
  for (std::uint8_t l = 0; l < calls.lanes.size(); ++l)
    if (!calls.lanes[l].empty())
      out.push_back(passed({rank, l, (step - 1) * std::ssize(calls.lanes[l]) - 1}));
  return out;
}

Instant Instants::latest(const std::vector<Instant>& causes) const {
  expects(!causes.empty(), "an instant that something decides");
  Instant out = causes.front();
  Time when = time_of(out);
  for (const Instant& cause : causes)
    if (const Time t = time_of(cause); t > when) {
      out = cause;
      when = t;
    }
  return out;
}

}  // namespace stepcast::engine
