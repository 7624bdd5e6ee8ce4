#include "validate/trainer/run/rank_report.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>

#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "sim/files/json_text.hpp"

namespace stepcast::validate {
namespace {

using Json = nlohmann::json;
using sim::TimelineEvent;

constexpr double longest_report = 4e9;  // bytes

std::vector<double> mean_over_ranks(const std::vector<Duration>& times, Communicator& world) {
  std::vector<double> mean;
  for (const Duration time : times)
    mean.push_back(seconds(time) / static_cast<double>(world.size()));
  world.all_reduce(mean);
  return mean;
}

/// What an operation takes as a rule: its median over the logged steps.
std::vector<Duration> typical_durations(const RankReport& report) {
  std::vector<Duration> typical;
  for (std::size_t i = 0; i < report.operations.size(); ++i) {
    std::vector<Duration> durations;
    for (const auto& step : report.spans) durations.push_back(step[i].second - step[i].first);
    typical.push_back(upper_median(std::move(durations)));
  }
  return typical;
}

Json json_of(const TimelineEvent& e, Duration typical) {
  return {e.lane,
          e.name,
          e.kind,
          e.group,
          e.bytes.value,
          e.start.count(),
          e.duration.count(),
          typical.count(),
          e.family ? Json(static_cast<int>(*e.family)) : Json(nullptr)};
}

TimelineEvent event_of(const Json& json, std::int64_t rank) {
  TimelineEvent e;
  e.rank = rank;
  e.lane = json[0];
  e.name = json[1];
  e.kind = json[2];
  e.group = json[3];
  e.bytes = Bytes(json[4].get<std::int64_t>());
  e.start = Duration(json[5].get<std::int64_t>());
  e.duration = Duration(json[6].get<std::int64_t>());
  if (!json[8].is_null()) e.family = static_cast<workloads::KernelFamily>(json[8].get<int>());
  return e;
}

/// One number per step: the mean over the ranks that know it.
std::vector<double> mean_of_known(const std::vector<Json>& ranks, const char* key) {
  std::vector<double> sums, counts;
  for (const Json& rank : ranks) {
    sums.resize(rank[key].size());
    counts.resize(rank[key].size());
    for (std::size_t s = 0; s < sums.size(); ++s)
      if (!rank[key][s].is_null()) {
        sums[s] += rank[key][s].get<double>();
        counts[s] += 1.0;
      }
  }
  for (std::size_t s = 0; s < sums.size(); ++s) sums[s] /= counts[s];
  return sums;
}

}  // namespace

void RankReport::add_log(const std::vector<Operation>& done, Duration origin, Duration time) {
  if (done.size() < operations.size()) return;
  if (done.size() > operations.size()) {  // those before had left the update out
    spans.clear();
    logged_times.clear();
  }
  operations = done;
  logged_times.push_back(time);
  auto& step = spans.emplace_back();
  for (const Operation& o : done) step.emplace_back(origin + o.start, origin + o.end);
}

std::size_t typical_step(const RankReport& mine, Communicator& world) {
  const std::vector<double> times = mean_over_ranks(mine.logged_times, world);
  return static_cast<std::size_t>(std::ranges::find(times, upper_median(times)) - times.begin());
}

std::string to_text(const RankReport& report, std::size_t typical) {
  Json json{{"rank", report.rank},
            {"first_step", report.first_step},
            {"buffers", report.buffers.value},
            {"resident", report.resident.value},
            {"device", report.device},
            {"losses", Json::array()},
            {"step_times", Json::array()},
            {"events", Json::array()}};
  for (const auto& loss : report.losses) json["losses"].push_back(loss ? Json(*loss) : Json());
  for (const Duration time : report.step_times) json["step_times"].push_back(seconds(time));
  std::vector<Operation> operations = report.operations;
  for (std::size_t i = 0; i < operations.size(); ++i)
    std::tie(operations[i].start, operations[i].end) = report.spans[typical][i];
  const auto events = events_of(operations, report.rank, {});
  const std::vector<Duration> durations = typical_durations(report);
  for (std::size_t i = 0; i < events.size(); ++i)
    json["events"].push_back(json_of(events[i], durations[i]));
  return sim::json_text(json);
}

std::vector<std::string> gather_texts(Communicator& world, const std::string& mine) {
  // As doubles, which a message is made of: their number, then the bytes themselves.
  const auto packed = [](const std::string& text) {
    std::vector<double> message(text.size() / sizeof(double) + 1);
    std::memcpy(message.data(), text.data(), text.size());
    return message;
  };
  if (world.rank() != 0) {
    const std::vector<double> size{static_cast<double>(mine.size())};
    world.send(size, 0);
    world.send(packed(mine), 0);
    return {};
  }
  std::vector<std::string> texts{mine};
  for (std::int64_t rank = 1; rank < world.size(); ++rank) {
    std::vector<double> size(1);
    world.receive(size, rank);
    if (!(size[0] >= 0.0 && size[0] <= longest_report))
      throw PeerLost("rank " + std::to_string(rank) + " announces what is no report");
    std::string& text = texts.emplace_back(static_cast<std::size_t>(size[0]), '\0');
    std::vector<double> message(text.size() / sizeof(double) + 1);
    world.receive(message, rank);
    std::memcpy(text.data(), message.data(), text.size());
  }
  return texts;
}

TrainerResults combined(const std::vector<std::string>& texts,
                        const workloads::ParallelPlan& plan) {
  std::vector<Json> ranks;
  for (const std::string& text : texts) ranks.push_back(sim::parsed_json(text));
  TrainerResults results;
  results.ranks = static_cast<std::int64_t>(ranks.size());
  results.first_step = ranks[0]["first_step"];
  results.device = ranks[0]["device"];
  results.losses = mean_of_known(ranks, "losses");
  for (const double time : mean_of_known(ranks, "step_times"))
    results.step_times.push_back(to_duration(time));
  results.step_time = upper_median(results.step_times);
  sim::Timeline typical;  // every operation at its median: for sums, not to be shown
  results.timeline.title = "measured";
  for (const Json& json : ranks) {
    const std::int64_t rank = json["rank"];
    results.buffers = std::max(results.buffers, Bytes(json["buffers"].get<std::int64_t>()));
    results.resident = std::max(results.resident, Bytes(json["resident"].get<std::int64_t>()));
    results.timeline.ranks[rank] = typical.ranks[rank] = 1;
    for (const Json& event : json["events"]) {
      typical.events.push_back(results.timeline.events.emplace_back(event_of(event, rank)));
      typical.events.back().duration = Duration(event[7].get<std::int64_t>());
    }
  }
  align_collectives(results.timeline, plan);
  for (std::size_t i = 0; i < typical.events.size(); ++i) {
    // The share of a collective that is waiting is that of the step shown.
    const TimelineEvent& shown = results.timeline.events[i];
    TimelineEvent& e = typical.events[i];
    if (shown.duration > Duration{})
      e.waited =
          to_duration(seconds(e.duration) * (seconds(shown.waited) / seconds(shown.duration)));
  }
  results.parts = times_by_name(typical);
  sim::settle(results.timeline);
  results.timeline.step = results.step_time;
  return results;
}

}  // namespace stepcast::validate
