#include "validate/trace/records/events.hpp"

#include <nlohmann/json.hpp>

#include "engine/check.hpp"
#include "sim/files/json_text.hpp"
#include "validate/trace/records/collector.hpp"
#include "validate/trace/records/event_reader.hpp"
#include "validate/trace/records/event_windows.hpp"

namespace stepcast::validate {
namespace {

using Json = nlohmann::json;

/// The value of a key, where it is of the type.
template <typename Value>
std::optional<Value> value_in(const Json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end()) return std::nullopt;
  if constexpr (std::is_same_v<Value, std::string>) {
    return at->is_string() ? std::optional(at->get<std::string>()) : std::nullopt;
  } else {
    return at->is_number_integer() ? std::optional(at->get<Value>()) : std::nullopt;
  }
}

/// Elements of an array under a key that are objects.
std::vector<Json> objects_in(const Json& object, const char* key) {
  std::vector<Json> out;
  if (const auto at = object.find(key); at != object.end() && at->is_array())
    for (const Json& element : *at)
      if (element.is_object()) out.push_back(element);
  return out;
}

/// What stands beside the events: Kineto's output_json.cpp and torch/profiler/profiler.py.
void read_around(const Json& root, RankTrace& out) {
  for (const Json& device : objects_in(root, "deviceProperties")) {
    ++out.devices;
    if (out.gpu.empty()) out.gpu = value_in<std::string>(device, "name").value_or("");
  }
  const auto distributed = root.find("distributedInfo");
  if (distributed == root.end() || !distributed->is_object()) return;
  out.rank = value_in<std::int64_t>(*distributed, "rank");
  out.world_size = value_in<std::int64_t>(*distributed, "world_size");
  out.nccl = value_in<std::string>(*distributed, "nccl_version").value_or("");
  for (const Json& group : objects_in(*distributed, "pg_config"))
    out.groups.push_back({value_in<std::string>(group, "pg_desc").value_or(""),
                          value_in<std::int64_t>(group, "pg_size").value_or(0)});
}

Json parse_around(const std::string& path, const EventWindows& windows) {
  try {
    return sim::parsed_json(windows.around());
  } catch (const Json::parse_error& error) {
    // PyTorch writes NaN and Infinity bare, as Python's json does.
    const Json pythonic = sim::python_json_or_discarded(windows.around());
    if (!pythonic.is_discarded()) return pythonic;
    throw no_json(path, windows.place_of(static_cast<std::int64_t>(error.byte)), error.what());
  }
}

}  // namespace

bool is_trace(TraceFile& file) {
  std::string_view text = file.ahead();
  constexpr std::string_view blank = " \t\r\n";
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return false;
  if (text[first] != '[') return text[first] == '{';
  const std::size_t second = text.find_first_not_of(blank, first + 1);
  return second != std::string_view::npos && text[second] == '{';
}

RankTrace read_trace(const std::string& path, TraceFile& file) {
  TraceCollector collector(path);
  EventWindows windows(path, file);
  EventReader reader(path, collector);
  while (const auto window = windows.next()) reader.read(*window);
  const Json root = parse_around(path, windows);
  if (root.is_object()) read_around(root, collector.trace());
  if (!windows.seen_events())
    throw InputError(path, "has no traceEvents: no trace of the PyTorch profiler", profile_hint);
  return collector.finish();
}

}  // namespace stepcast::validate
