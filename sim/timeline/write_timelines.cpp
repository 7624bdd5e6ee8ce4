#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/units_text.hpp"
#include "sim/files/gzip.hpp"
#include "sim/files/json_text.hpp"
#include "sim/files/names.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/kernels/kernel_names.hpp"
#include "sim/timeline/arrows.hpp"
#include "sim/timeline/timeline_file.hpp"
#include "sim/timeline/trace_writer.hpp"

namespace stepcast::sim {
namespace {

constexpr std::size_t part_size = 1 << 20;  // that is written at once

/// The file behind a writer's text.
class TraceFileOut {
 public:
  explicit TraceFileOut(const std::string& path) : file_(path) {
    if (path.ends_with(".gz")) packer_.emplace();
  }
  std::string& text() { return text_; }
  void pass_on() {
    if (text_.size() >= part_size) write();
  }
  void keep() {
    write();
    if (packer_) file_.write(packer_->finish());
    file_.seal();
    file_.keep();
  }

 private:
  void write() {
    file_.write(packer_ ? packer_->pack(text_) : text_);
    text_.clear();
  }
  WholeFile file_;
  std::optional<Gzip> packer_;
  std::string text_;
};

bool is_perfetto(std::string_view path) {
  if (path.ends_with(".gz")) path.remove_suffix(3);
  return path.ends_with(".pftrace");
}

std::string steps_of(std::span<const Timeline> timelines) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::object();
  for (const Timeline& timeline : timelines)
    steps[timeline.title] = static_cast<double>(timeline.step.count()) / 1e6;
  return R"("step_us":)" + json_text(steps);
}

/// One timeline through a writer, rank by rank.
class TimelineScene {
 public:
  /// `pid_of` a rank; `path` is the critical path's process.
  TimelineScene(const Timeline& timeline, std::function<std::int64_t(std::int64_t)> pid_of,
                std::int64_t path, TraceWriter& writer, TraceFileOut& file)
      : timeline_(timeline),
        pid_of_(std::move(pid_of)),
        path_(path),
        writer_(writer),
        file_(file),
        shown_(timeline.to_show()),
        arrows_(arrows_of(timeline)) {
    for (const TimelineEvent& e : timeline.events) events_of_[e.rank].push_back(&e);
    std::stable_sort(arrows_.begin(), arrows_.end(),
                     [](const auto& a, const auto& b) { return a.from < b.from; });
  }

  void write(std::uint64_t& first_arrow) {
    first_arrow_ = first_arrow;
    for (const auto& [rank, simulated] : shown_) name(rank, simulated);
    for (const auto& [rank, simulated] : shown_) {
      events(rank, simulated);
      counters(rank, simulated);
    }
    if (!timeline_.path.empty()) path();
    for (const TimelineArrow& a : arrows_) arrow(a);
    first_arrow += arrows_.size();
  }

 private:
  using Numbers = std::vector<std::uint64_t>;

  void name(std::int64_t rank, std::int64_t simulated) {
    const std::int64_t alike = timeline_.shown.empty() ? timeline_.ranks.at(rank) : 1;
    std::string name =
        fmt::format("{}{}rank {}", timeline_.title, timeline_.title.empty() ? "" : " ", rank);
    if (alike > 1) name += fmt::format(" (one of {} alike)", alike);
    const bool slowest = timeline_.slowest && simulated == *timeline_.slowest;
    if (slowest) name += " (computes longest)";
    std::vector<TraceArg> args{
        {"timeline", std::string_view(timeline_.title)}, {"rank", rank}, {"alike", alike}};
    if (slowest) args.push_back({"slowest", true});
    writer_.process(pid_of_(rank), name, args);
    std::set<std::int64_t> lanes;
    for (const TimelineEvent* e : events_of_[simulated]) lanes.insert(e->lane);
    for (const std::int64_t lane : lanes) writer_.track(pid_of_(rank), lane, lane_name(lane));
  }

  /// The numbers of the arrows that leave or reach a rank's lanes, by their instants there.
  std::map<std::int64_t, std::vector<std::pair<Duration, std::uint64_t>>> ends_of(
      std::int64_t rank, bool leaving) const {
    std::map<std::int64_t, std::vector<std::pair<Duration, std::uint64_t>>> out;
    for (std::size_t i = 0; i < arrows_.size(); ++i) {
      const TimelineArrow& a = arrows_[i];
      if ((leaving ? a.from_rank : a.to_rank) != rank) continue;
      // A message ends with its event, which holds the instant before.
      const Duration at = leaving ? a.from : a.message ? a.to - Duration(1) : a.to;
      out[leaving ? a.from_lane : a.to_lane].emplace_back(at, first_arrow_ + i);
    }
    for (auto& [lane, ends] : out) std::ranges::sort(ends);
    return out;
  }

  /// Of one lane's arrows those within an event; `next` is the first that is not taken yet.
  static Numbers within(const TimelineEvent& e,
                        const std::vector<std::pair<Duration, std::uint64_t>>& ends,
                        std::size_t& next) {
    Numbers out;
    while (next < ends.size() && ends[next].first < e.start) ++next;
    for (; next < ends.size() && ends[next].first < e.start + e.duration; ++next)
      out.push_back(ends[next].second);
    return out;
  }

  void events(std::int64_t rank, std::int64_t simulated) {
    auto leaving = ends_of(rank, true), arriving = ends_of(rank, false);
    std::map<std::int64_t, std::pair<std::size_t, std::size_t>> next;
    for (const TimelineEvent* e : events_of_[simulated]) {
      auto& [next_leaving, next_arriving] = next[e->lane];
      const Numbers from = within(*e, leaving[e->lane], next_leaving);
      const Numbers to = within(*e, arriving[e->lane], next_arriving);
      event(*e, pid_of_(rank), from, to);
      file_.pass_on();
    }
  }

  void event(const TimelineEvent& e, std::int64_t pid, const Numbers& from, const Numbers& to) {
    std::vector<TraceArg> args{{"bytes", e.bytes.value}};
    if (e.is_collective()) {
      args.push_back({"group", std::string_view(e.group)});
      args.push_back({"waited_us", e.waited});
    }
    const std::string family =
        e.family ? std::string(word_for(kernel_family_names, *e.family)) : "";
    if (e.family) args.push_back({"family", std::string_view(family)});
    if (e.hbm > 0.0) args.push_back({"hbm", e.hbm});
    writer_.slice({pid, e.lane, e.name, e.kind, e.start, e.duration, args, from, to});
  }

  void counters(std::int64_t rank, std::int64_t simulated) {
    std::int64_t index = 0;
    for (const TimelineCounter& counter : timeline_.counters) {
      if (counter.rank != simulated) continue;
      writer_.counter(pid_of_(rank), index, counter.name, counter.unit);
      for (const auto& [when, value] : counter.values) {
        writer_.value(pid_of_(rank), index, when, value);
        file_.pass_on();
      }
      ++index;
    }
  }

  /// The path's own track: what tells where on the ranks it runs.
  void path() {
    const TraceArg of{"path_of", std::string_view(timeline_.title)};
    writer_.process(path_, timeline_.title + " critical path", {&of, 1});
    writer_.track(path_, 0, "critical path");
    for (const TimelineEvent& e : timeline_.path) {
      const TraceArg args[] = {{"rank", e.rank}, {"lane", e.lane}};
      writer_.slice({path_, 0, e.name, e.kind, e.start, e.duration, args});
      file_.pass_on();
    }
  }

  void arrow(const TimelineArrow& a) {
    const auto number = first_arrow_ + static_cast<std::uint64_t>(&a - arrows_.data());
    const char* const name = a.message ? "message" : "critical path";
    writer_.arrow({number, name, a.message ? "message" : "path", pid_of_(a.from_rank), a.from_lane,
                   a.from, pid_of_(a.to_rank), a.to_lane, a.to});
    file_.pass_on();
  }

  const Timeline& timeline_;
  const std::function<std::int64_t(std::int64_t)> pid_of_;
  const std::int64_t path_;
  TraceWriter& writer_;
  TraceFileOut& file_;
  const std::map<std::int64_t, std::int64_t> shown_;
  std::vector<TimelineArrow> arrows_;
  std::uint64_t first_arrow_ = 1;
  std::map<std::int64_t, std::vector<const TimelineEvent*>> events_of_;
};

}  // namespace

void write_timelines(const std::string& path, std::span<const Timeline> timelines) {
  const auto pid_of = [&](std::size_t index, std::int64_t rank) {
    return rank * static_cast<std::int64_t>(timelines.size()) + static_cast<std::int64_t>(index);
  };
  std::int64_t last_rank = 0;
  for (const Timeline& timeline : timelines)
    if (const auto shown = timeline.to_show(); !shown.empty())
      last_rank = std::max(last_rank, shown.rbegin()->first);
  TraceFileOut file(path);
  const auto writer = is_perfetto(path) ? perfetto_trace(file.text())
                                        : chrome_trace(file.text(), steps_of(timelines));
  std::uint64_t first_arrow = 1;
  for (std::size_t t = 0; t < timelines.size(); ++t)
    TimelineScene(
        timelines[t], [&](std::int64_t rank) { return pid_of(t, rank); }, pid_of(t, last_rank + 1),
        *writer, file)
        .write(first_arrow);
  writer->finish();
  file.keep();
}

TimelineSize size_of(const Timeline& timeline) {
  TimelineSize size;
  std::map<std::int64_t, std::int64_t> shown_as;  // a simulated rank: by how many
  for (const auto& [rank, simulated] : timeline.to_show()) ++shown_as[simulated], ++size.ranks;
  for (const auto& [rank, alike] : timeline.ranks) size.all_ranks += alike;
  for (const TimelineEvent& e : timeline.events) {
    const auto times = shown_as.find(e.rank);
    if (times == shown_as.end()) continue;
    size.events += times->second;
    size.name_bytes += times->second * std::ssize(e.name);
  }
  return size;
}

Bytes estimated_size(const std::string& path, const TimelineSize& size) {
  // Of an event with the points of the counters that it moves, as files of llama2-7b and llama3-8b
  // on 8 to 64 H100 came out (2026-11).
  const double per_event = is_perfetto(path) ? 98.0 : 215.0;
  const double per_name = is_perfetto(path) ? 0.0 : 1.0;
  const double packed = !path.ends_with(".gz") ? 1.0 : is_perfetto(path) ? 0.145 : 0.08;
  const double bytes = per_event * static_cast<double>(size.events) +
                       per_name * static_cast<double>(size.name_bytes);
  return Bytes(static_cast<std::int64_t>(bytes * packed));
}

TimelineApproval no_larger_than(Bytes most, const std::string& path) {
  return [most, path](const TimelineSize& size) {
    const Bytes about = estimated_size(path, size);
    if (about <= most) return;
    throw InputError(
        path,
        fmt::format("would be about {} ({} events of {} of {} ranks)", to_text(about), size.events,
                    size.ranks, size.all_ranks),
        fmt::format("ask for fewer ranks by --timeline-ranks, a .pftrace (about {}), or allow it "
                    "by --timeline-limit",
                    to_text(estimated_size("x.pftrace", size))));
  };
}

}  // namespace stepcast::sim
