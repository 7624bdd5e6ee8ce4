#include "sim/command/timeline_options.hpp"

#include <algorithm>
#include <charconv>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/split.hpp"
#include "sim/timeline/counters.hpp"
#include "sim/timeline/timeline_file.hpp"

namespace stepcast::sim {
namespace {

constexpr std::int64_t most_ranks = 10'000'000;  // of a list; a typing mistake beyond

std::int64_t whole(std::string_view text, const std::string& option) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value >= most_ranks)
    throw UsageError("--" + option + " has no rank '" + std::string(text) + "'",
                     "0,8-15, all or classes");
  return value;
}

}  // namespace

RankChoice rank_choice(std::string_view text, const std::string& option) {
  if (text == "all") return {RankChoice::Kind::all};
  if (text == "classes") return {RankChoice::Kind::representatives};
  RankChoice out{RankChoice::Kind::listed};
  for (const std::string_view part : split(text, ',')) {
    const std::size_t dash = std::min(part.find('-'), part.size());
    const std::int64_t first = whole(part.substr(0, dash), option);
    const std::int64_t last = dash == part.size() ? first : whole(part.substr(dash + 1), option);
    if (last < first) whole("", option);
    for (std::int64_t rank = first; rank <= last; ++rank) out.ranks.push_back(rank);
  }
  std::ranges::sort(out.ranks);
  out.ranks.erase(std::unique(out.ranks.begin(), out.ranks.end()), out.ranks.end());
  return out;
}

TimelineOrder timeline_order(const Arguments& arguments) {
  for (const Option& option : {timeline_ranks_option, timeline_limit_option})
    if (arguments.has(option.name) && !arguments.has("timeline"))
      throw UsageError("--" + std::string(option.name) + " is of --timeline FILE");
  TimelineOrder out;
  out.path = arguments.get("timeline");
  out.ranks =
      rank_choice(arguments.get(timeline_ranks_option.name, "classes"), timeline_ranks_option.name);
  out.limit = usual_timeline_limit;
  if (arguments.has(timeline_limit_option.name))
    out.limit = parse<Bytes>(arguments.get(timeline_limit_option.name), "--timeline-limit");
  return out;
}

void write_step(const TimelineOrder& order, Timeline timeline, const Scenario& scenario) {
  add_power(timeline, scenario.node.gpu);
  add_memory(timeline, scenario);
  add_bytes_in_flight(timeline);
  write_timelines(order.path, {&timeline, 1});
}

}  // namespace stepcast::sim
