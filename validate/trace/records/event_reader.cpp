#include "validate/trace/records/event_reader.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "validate/trace/records/numbers.hpp"

namespace stepcast::validate {
namespace {

namespace ondemand = simdjson::ondemand;

/// What an argument of a kernel, copy or launch says, by its name.
struct Argument {
  std::string_view name;
  void (*take)(TraceEvent& event, std::string_view text);
};
constexpr Argument arguments[] = {
    {"correlation", [](TraceEvent& e, std::string_view t) { e.correlation = integer_of(t); }},
    {"stream", [](TraceEvent& e, std::string_view t) { e.stream = integer_of(t); }},
    {"device", [](TraceEvent& e, std::string_view t) { e.device = integer_of(t).value_or(0); }},
    {"Collective name",
     [](TraceEvent& e, std::string_view t) { e.facts.collective = t, e.has_facts = true; }},
    {"Process Group Name",
     [](TraceEvent& e, std::string_view t) { e.facts.group = t, e.has_facts = true; }},
    {"Process Group Ranks", [](TraceEvent& e, std::string_view t) { e.facts.members = t; }},
    {"Group size",
     [](TraceEvent& e, std::string_view t) { e.facts.group_size = integer_of(t).value_or(0); }},
    {"In msg nelems",
     [](TraceEvent& e, std::string_view t) { e.facts.in = integer_of(t).value_or(-1); }},
    {"Out msg nelems",
     [](TraceEvent& e, std::string_view t) { e.facts.out = integer_of(t).value_or(-1); }},
    {"dtype", [](TraceEvent& e, std::string_view t) { e.facts.dtype = t; }},
    {"Src Rank",
     [](TraceEvent& e, std::string_view t) { e.facts.source = integer_of(t).value_or(-1); }},
    {"Dst Rank",
     [](TraceEvent& e, std::string_view t) { e.facts.destination = integer_of(t).value_or(-1); }},
};

/// As it stands in the file: no name that is asked for has an escape.
std::string_view name_of(ondemand::field& field) {
  const char* raw = field.key().raw();
  const char* end = raw;
  while (*end != '"') end += *end == '\\' ? 2 : 1;
  return {raw, static_cast<std::size_t>(end - raw)};
}

/// A text or number as text, good until the next window; none for any other value.
std::optional<std::string_view> text_of(ondemand::value value) {
  std::string_view token = value.raw_json_token();
  const char first = token.empty() ? ' ' : token.front();
  if (first == '"') return value.get_string().value();
  if (first != '-' && (first < '0' || first > '9')) return std::nullopt;
  return token.substr(0, token.find_last_not_of(" \t\r\n") + 1);
}

/// Whether anybody asks for the arguments of the event, or may, its category being yet to come.
bool has_arguments(const TraceEvent& event) {
  return event.category.empty() || is_gpu(event.category) || is_launch(event.category);
}

}  // namespace

/// A parser, and the event that it is at.
class EventReader::Walk {
 public:
  Walk(const std::string& path, TraceCollector& collector) : path_(path), collector_(collector) {}

  void read(std::string_view events);

 private:
  void read_field(std::string_view name, ondemand::value value);
  void read_arguments(ondemand::object object);
  std::optional<std::int64_t> time_of(std::string_view text) const;

  const std::string& path_;
  TraceCollector& collector_;
  ondemand::parser parser_;
  TraceEvent event_;
  std::size_t events_ = 0;
};

std::optional<std::int64_t> EventReader::Walk::time_of(std::string_view text) const {
  const auto out = nanoseconds_of(text);
  if (out) return out;
  throw InputError(fmt::format("{}: traceEvents[{}]", path_, event_.index),
                   fmt::format("'{}' is no time in microseconds", printable(text)), "");
}

void EventReader::Walk::read_arguments(ondemand::object object) {
  for (ondemand::field field : object) {
    const std::string_view name = name_of(field);
    for (const Argument& argument : arguments) {
      if (argument.name != name) continue;
      if (const auto text = text_of(field.value())) argument.take(event_, *text);
      break;
    }
  }
}

void EventReader::Walk::read_field(std::string_view name, ondemand::value value) {
  if (name == "args") {
    if (has_arguments(event_) && value.type() == ondemand::json_type::object)
      read_arguments(value.get_object());
    return;
  }
  constexpr std::string_view names[] = {"name", "cat", "ph", "ts", "dur", "tid"};
  if (std::ranges::find(names, name) == std::end(names)) return;
  const bool quoted = value.type() == ondemand::json_type::string;
  const auto text = text_of(value);
  if (!text) return;
  if (name == "ts") event_.begin = time_of(*text);
  if (name == "dur") event_.duration = time_of(*text);
  if (name == "tid" && !quoted) event_.thread = integer_of(*text);
  if (!quoted) return;
  if (name == "name") event_.name = *text;
  if (name == "cat") event_.category = *text;
  if (name == "ph") event_.phase = *text;
  if (name == "tid" && text->starts_with("stream ")) event_.thread = integer_of(text->substr(7));
}

void EventReader::Walk::read(std::string_view events) {
  ondemand::document document = parser_.iterate(simdjson::padded_string_view(
      events.data(), events.size(), events.size() + EventWindows::room_behind));
  for (ondemand::value value : document.get_array()) {
    if (value.type() != ondemand::json_type::object) continue;
    event_ = {};
    event_.index = events_++;
    for (ondemand::field field : value.get_object()) read_field(name_of(field), field.value());
    collector_.add(event_);
  }
}

EventReader::EventReader(std::string path, TraceCollector& collector)
    : path_(std::move(path)), walk_(std::make_unique<Walk>(path_, collector)) {}

EventReader::~EventReader() = default;

void EventReader::read(const EventWindows::Window& window) {
  static_assert(EventWindows::room_behind >= simdjson::SIMDJSON_PADDING);
  try {
    walk_->read(window.text);
  } catch (const simdjson::simdjson_error& error) {
    // nlohmann's parser is slower and says where.
    try {
      const auto nothing =
          nlohmann::json::parse(window.text, [](int, auto, auto&) { return false; });
    } catch (const nlohmann::json::parse_error& found) {
      throw no_json(path_, window.at + static_cast<std::int64_t>(found.byte), found.what());
    }
    throw InputError(fmt::format("{}:byte {}", path_, window.at),
                     fmt::format("is no JSON that simdjson reads: {}", error.what()), profile_hint);
  }
}

InputError no_json(const std::string& path, std::int64_t byte, std::string_view what) {
  const std::string where = fmt::format("{}:byte {}", path, byte);
  if (what.find("UTF-8") != std::string_view::npos)
    return InputError(where, "is not UTF-8 text", "is it a trace? gzip is recognised by itself");
  const std::size_t detail = what.find("- ");
  return InputError(
      where,
      "is no JSON: " + printable(what.substr(detail == std::string_view::npos ? 0 : detail + 2)),
      profile_hint);
}

}  // namespace stepcast::validate
