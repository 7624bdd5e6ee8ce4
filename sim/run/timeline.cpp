#include "sim/run/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "engine/check.hpp"
#include "sim/files/gzip.hpp"
#include "sim/files/names.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/kernels/kernel_names.hpp"

namespace stepcast::sim {
namespace {

using Json = nlohmann::ordered_json;

/// Microseconds to the picosecond.
std::string in_us(Duration d) {
  const std::int64_t ps = d.count();
  return fmt::format("{}{}.{:06}", ps < 0 ? "-" : "", std::abs(ps / 1000000),
                     std::abs(ps % 1000000));
}

Duration from_us(double us) { return to_duration(us * 1e-6); }

std::string quoted(const std::string& text) { return Json(text).dump(); }

void append_lane(std::string& out, std::int64_t pid, std::int64_t lane) {
  out += fmt::format(
      R"({{"ph":"M","name":"thread_name","pid":{0},"tid":{1},"args":{{"name":{2}}}}},
{{"ph":"M","name":"thread_sort_index","pid":{0},"tid":{1},"args":{{"sort_index":{1}}}}},
)",
      pid, lane, quoted(lane_name(lane)));
}

void append_rank(std::string& out, const Timeline& timeline, std::int64_t rank, std::int64_t pid) {
  const std::int64_t alike = timeline.ranks.at(rank);
  const std::string name =
      fmt::format("{}{}rank {}{}", timeline.title, timeline.title.empty() ? "" : " ", rank,
                  alike > 1 ? fmt::format(" (one of {} alike)", alike) : "");
  out += fmt::format(
      R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{},"timeline":{},"rank":{},"alike":{}}}}})",
      pid, quoted(name), quoted(timeline.title), rank, alike);
  out += ",\n";
}

void append_event(std::string& out, const TimelineEvent& e, std::int64_t pid) {
  out += fmt::format(
      R"({{"ph":"X","pid":{},"tid":{},"name":{},"cat":{},"ts":{},"dur":{},"args":{{"bytes":{})",
      pid, e.lane, quoted(e.name), quoted(e.kind), in_us(e.start), in_us(e.duration),
      e.bytes.value);
  if (e.is_collective())
    out += fmt::format(R"(,"group":{},"waited_us":{})", quoted(e.group), in_us(e.waited));
  if (e.family) out += fmt::format(R"(,"family":"{}")", word_for(kernel_family_names, *e.family));
  out += "}},\n";
}

/// Of the path's own track: what tells where on the ranks it runs.
void append_path_edge(std::string& out, const TimelineEvent& e, std::int64_t pid) {
  out += fmt::format(
      R"({{"ph":"X","pid":{},"tid":0,"name":{},"cat":{},"ts":{},"dur":{},"args":{{"rank":{},"lane":{}}}}})",
      pid, quoted(e.name), quoted(e.kind), in_us(e.start), in_us(e.duration), e.rank, e.lane);
  out += ",\n";
}

/// Arrows from an event on the path to the next one, where that is on another rank or lane. They
/// bind to the events that hold their ends.
template <class PidOf>
void append_arrows(std::string& out, const std::vector<TimelineEvent>& path, PidOf pid_of) {
  const TimelineEvent* before = nullptr;
  for (const TimelineEvent& e : path) {
    if (e.lane == host_lane) continue;
    if (before != nullptr && (before->rank != e.rank || before->lane != e.lane)) {
      const auto id = &e - path.data();
      out += fmt::format(
          R"({{"ph":"s","id":{},"pid":{},"tid":{},"name":"critical path","cat":"path","ts":{}}},)",
          id, pid_of(before->rank), before->lane,
          in_us(before->start + before->duration - Duration(1)));
      out += fmt::format(
          R"({{"ph":"f","bp":"e","id":{},"pid":{},"tid":{},"name":"critical path","cat":"path","ts":{}}})",
          id, pid_of(e.rank), e.lane, in_us(e.start));
      out += ",\n";
    }
    before = &e;
  }
}

template <class PidOf>
void append_path(std::string& out, const Timeline& timeline, std::int64_t pid, PidOf pid_of) {
  out += fmt::format(
      R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":{1},"path_of":{2}}}}},
{{"ph":"M","name":"thread_name","pid":{0},"tid":0,"args":{{"name":"critical path"}}}},
)",
      pid, quoted(timeline.title + " critical path"), quoted(timeline.title));
  for (const TimelineEvent& e : timeline.path) append_path_edge(out, e, pid);
  append_arrows(out, timeline.path, pid_of);
}

TimelineEvent edge_of(const Json& json) {
  TimelineEvent e;
  e.rank = json.at("args").at("rank").get<std::int64_t>();
  e.lane = json.at("args").at("lane").get<std::int64_t>();
  e.name = json.at("name").get<std::string>();
  e.kind = json.at("cat").get<std::string>();
  e.start = from_us(json.at("ts").get<double>());
  e.duration = from_us(json.at("dur").get<double>());
  return e;
}

TimelineEvent event_of(const Json& json) {
  const Json& more = json.at("args");
  TimelineEvent e;
  e.lane = json.at("tid").get<std::int64_t>();
  e.name = json.at("name").get<std::string>();
  e.kind = json.at("cat").get<std::string>();
  e.start = from_us(json.at("ts").get<double>());
  e.duration = from_us(json.at("dur").get<double>());
  e.bytes = Bytes(more.at("bytes").get<std::int64_t>());
  if (more.contains("group")) {
    e.group = more.at("group").get<std::string>();
    e.waited = from_us(more.at("waited_us").get<double>());
  }
  if (more.contains("family")) {
    e.family = meaning_of(kernel_family_names, more.at("family").get<std::string>());
    if (!e.family) throw std::out_of_range("family");
  }
  return e;
}

std::vector<Timeline> timelines_of(const Json& file) {
  std::vector<Timeline> timelines;
  std::map<std::int64_t, std::pair<std::size_t, std::int64_t>> place;  // pid -> timeline, rank
  std::map<std::int64_t, std::size_t> paths;                           // pid -> timeline
  for (const Json& json : file.at("traceEvents")) {
    const auto pid = json.at("pid").get<std::int64_t>();
    if (json.at("ph") == "M" && json.at("name") != "process_name") continue;
    if (json.at("ph") == "M") {
      const Json& more = json.at("args");
      const bool is_path = more.contains("path_of");
      const auto title = more.at(is_path ? "path_of" : "timeline").get<std::string>();
      auto at = std::ranges::find(timelines, title, &Timeline::title);
      if (at == timelines.end()) at = timelines.insert(at, Timeline{title});
      if (is_path) {
        paths[pid] = static_cast<std::size_t>(at - timelines.begin());
        continue;
      }
      const auto rank = more.at("rank").get<std::int64_t>();
      at->ranks[rank] = more.at("alike").get<std::int64_t>();
      place[pid] = {static_cast<std::size_t>(at - timelines.begin()), rank};
    } else if (json.at("ph") != "X") {
      continue;  // an arrow, which follows from the path
    } else if (paths.contains(pid)) {
      timelines[paths.at(pid)].path.push_back(edge_of(json));
    } else {
      const auto [index, rank] = place.at(pid);
      TimelineEvent& e = timelines[index].events.emplace_back(event_of(json));
      e.rank = rank;
    }
  }
  const Json& steps = file.at("otherData").at("step_us");
  for (Timeline& timeline : timelines) timeline.step = from_us(steps.at(timeline.title));
  return timelines;
}

}  // namespace

std::string lane_name(std::int64_t lane) {
  constexpr const char* names[] = {"compute",   "tensor",           "data",          "copy",
                                   "send next", "receive previous", "send previous", "receive next",
                                   "replica",   "context"};
  static_assert(std::size(names) == workloads::num_lanes);
  const bool known = lane >= 0 && lane < std::ssize(names);
  return known ? names[lane] : fmt::format("lane {}", lane);
}

TimelineEvent described(const workloads::Kernel& kernel) {
  using workloads::KernelFamily;
  TimelineEvent e;
  e.name = kernel.name;
  e.bytes = kernel.bytes;
  e.family = kernel.family;
  if (kernel.family == KernelFamily::gemm || kernel.family == KernelFamily::grouped_gemm)
    e.kind = "gemm";
  else if (kernel.family == KernelFamily::attention_forward)
    e.kind = "attention";
  else if (kernel.family == KernelFamily::attention_backward)
    e.kind = "attention_backward";
  else
    e.kind = elementwise_use(kernel).kind;
  return e;
}

TimelineEvent described(const workloads::Collective& collective) {
  TimelineEvent e;
  e.name = collective.name;
  e.kind = word_for(collective_names, collective.kind);
  e.group = workloads::axis_of(collective.group).name;
  e.bytes = collective.bytes;
  return e;
}

/// `times` knows rank, lane and times; `what` is the index-th of its kind.
template <class What>
void TimelineRecorder::add(const What& what, std::uint64_t index, TimelineEvent times) {
  if (timeline_.sums) {
    constexpr bool collective = std::is_same_v<What, workloads::Collective>;
    const auto rank = static_cast<std::size_t>(times.rank);
    if (sums_.size() <= rank) sums_.resize(rank + 1);
    sums_[rank].resize(program_.kernels.size() + program_.collectives.size());
    std::size_t& place = sums_[rank][collective ? program_.kernels.size() + index : index];
    if (place > 0) {
      TimelineEvent& sum = timeline_.events[place - 1];
      sum.duration += times.duration;
      sum.waited += times.waited;
      ++sum.calls;
      return;
    }
    place = timeline_.events.size() + 1;
  }
  TimelineEvent& e = timeline_.events.emplace_back(described(what));
  e.rank = times.rank;
  e.lane = times.lane;
  e.start = times.start;
  e.duration = times.duration;
  e.waited = times.waited;
}

void TimelineRecorder::work(std::uint32_t rank, std::uint8_t lane, std::uint32_t work, Time from,
                            Time to) {
  TimelineEvent times{rank, lane, "", ""};
  times.start = from.time_since_epoch();
  times.duration = to - from;
  add(program_.kernels[work], work, std::move(times));
}

void TimelineRecorder::transfer(std::uint32_t rank, std::uint8_t lane, std::uint32_t transfer,
                                Time arrived, Time started, Time ended) {
  TimelineEvent times{rank, lane, "", ""};
  times.start = arrived.time_since_epoch();
  times.duration = ended - arrived;
  times.waited = started - arrived;
  add(program_.collectives[transfer], transfer, std::move(times));
}

void settle(Timeline& timeline) {
  const auto key = [](const TimelineEvent& e) { return std::tuple(e.start, e.rank, e.lane); };
  std::ranges::stable_sort(timeline.events, {}, key);
  const Duration first = timeline.events.empty() ? Duration{} : timeline.events.front().start;
  for (TimelineEvent& e : timeline.events) e.start -= first;
}

void write_timelines(const std::string& path, std::span<const Timeline> timelines) {
  const auto pid_of = [&](std::size_t index, std::int64_t rank) {
    return rank * static_cast<std::int64_t>(timelines.size()) + static_cast<std::int64_t>(index);
  };
  std::int64_t last_rank = 0;
  for (const Timeline& timeline : timelines)
    if (!timeline.ranks.empty()) last_rank = std::max(last_rank, timeline.ranks.rbegin()->first);
  std::string text(timeline_head);
  text += R"("step_us":{)";
  for (const Timeline& timeline : timelines)
    text += fmt::format("{}{}:{}", &timeline == timelines.data() ? "" : ",", quoted(timeline.title),
                        in_us(timeline.step));
  text += "}},\"traceEvents\":[\n";
  for (std::size_t t = 0; t < timelines.size(); ++t) {
    std::set<std::pair<std::int64_t, std::int64_t>> lanes;
    for (const TimelineEvent& e : timelines[t].events) lanes.emplace(e.rank, e.lane);
    for (const auto& [rank, alike] : timelines[t].ranks)
      append_rank(text, timelines[t], rank, pid_of(t, rank));
    for (const auto& [rank, lane] : lanes) append_lane(text, pid_of(t, rank), lane);
    for (const TimelineEvent& e : timelines[t].events) append_event(text, e, pid_of(t, e.rank));
    if (!timelines[t].path.empty())  // a process beside those of ranks
      append_path(text, timelines[t], pid_of(t, last_rank + 1),
                  [&](std::int64_t rank) { return pid_of(t, rank); });
  }
  if (text.ends_with(",\n")) text.resize(text.size() - 2);
  text += "\n]}\n";
  std::ofstream file(path, std::ios::binary);
  file << (path.ends_with(".gz") ? gzip(text) : text);
  file.close();
  if (!file) throw OutputError(path, "the timeline cannot be written");
}

std::vector<Timeline> read_timelines(const std::string& path) {
  const std::string text = read_packed(path);
  try {
    return timelines_of(Json::parse(text));
  } catch (const Json::exception& error) {
    throw InputError(path, "is no timeline of stepcast", error.what());
  } catch (const std::out_of_range&) {
    throw InputError(path, "is no timeline of stepcast", "an event of an unknown rank or family");
  }
}

}  // namespace stepcast::sim
