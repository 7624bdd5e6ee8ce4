#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>

#include "engine/check.hpp"
#include "sim/files/gzip.hpp"
#include "sim/files/json_text.hpp"
#include "sim/files/names.hpp"
#include "sim/kernels/kernel_names.hpp"
#include "sim/timeline/timeline_file.hpp"

namespace stepcast::sim {
namespace {

using Json = nlohmann::ordered_json;

Duration from_us(double us) { return to_duration(us * 1e-6); }

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
  e.hbm = more.value("hbm", 0.0);
  return e;
}

/// A counter's values stand together.
void add_value(Timeline& timeline, std::int64_t rank, const Json& json) {
  const auto name = json.at("name").get<std::string>();
  const auto quantity = json.at("args").begin();
  if (timeline.counters.empty() || timeline.counters.back().rank != rank ||
      timeline.counters.back().name != name)
    timeline.counters.push_back({rank, name, quantity.key(), {}});
  timeline.counters.back().values.emplace_back(from_us(json.at("ts").get<double>()),
                                               quantity.value().get<double>());
}

/// Who sent, until who received it is read.
struct Sent {
  std::int64_t pid = 0, lane = 0;
};

std::vector<Timeline> timelines_of(const Json& file) {
  std::vector<Timeline> timelines;
  std::map<std::int64_t, Sent> messages;                               // by number
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
      if (more.contains("slowest") && !at->slowest) at->slowest = rank;
      place[pid] = {static_cast<std::size_t>(at - timelines.begin()), rank};
    } else if (json.at("ph") == "s" && json.at("cat") == "message") {
      messages[json.at("id").get<std::int64_t>()] = {pid, json.at("tid").get<std::int64_t>()};
    } else if (json.at("ph") == "f" && json.at("cat") == "message") {
      const Sent sent = messages.at(json.at("id").get<std::int64_t>());
      const auto [index, rank] = place.at(sent.pid);
      timelines[index].receivers[{rank, sent.lane}] = place.at(pid).second;
    } else if (json.at("ph") == "C") {
      const auto [index, rank] = place.at(pid);
      add_value(timelines[index], rank, json);
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
  for (Timeline& timeline : timelines) {
    timeline.step = from_us(steps.at(timeline.title));
    // In the file rank by rank.
    std::ranges::stable_sort(timeline.events, {}, [](const TimelineEvent& e) {
      return std::tuple(e.start, e.rank, e.lane);
    });
  }
  return timelines;
}

}  // namespace

std::vector<Timeline> read_timelines(const std::string& path) {
  const std::string text = read_packed(path);
  try {
    return timelines_of(parsed_ordered_json(text));
  } catch (const Json::exception& error) {
    throw InputError(path, "is no timeline of stepcast", error.what());
  } catch (const std::out_of_range&) {
    throw InputError(path, "is no timeline of stepcast", "an event of an unknown rank or family");
  }
}

}  // namespace stepcast::sim
