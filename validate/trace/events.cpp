#include "validate/trace/events.hpp"

#include <fmt/format.h>

#include <istream>
#include <nlohmann/json.hpp>

#include "engine/check.hpp"
#include "validate/trace/collector.hpp"
#include "validate/trace/numbers.hpp"

namespace stepcast::validate {
namespace {

using Json = nlohmann::json;

/// nlohmann's events of the text, sorted into what a trace is made of.
class Reader : public nlohmann::json_sax<Json> {
 public:
  Reader(const std::string& path, const TraceFile& file)
      : path_(path), file_(file), collector_(path) {}

  RankTrace finish() {
    if (!seen_events_)
      throw InputError(path_, "has no traceEvents: no trace of the PyTorch profiler", profile_hint);
    return collector_.finish();
  }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool binary(Json::binary_t&) override { return true; }
  bool number_integer(std::int64_t value) override { return number(std::to_string(value)); }
  bool number_unsigned(std::uint64_t value) override { return number(std::to_string(value)); }
  bool number_float(double, const std::string& token) override { return number(token); }
  bool string(std::string& text) override;
  bool key(std::string& name) override;
  bool start_object(std::size_t) override;
  bool start_array(std::size_t) override;
  bool end_object() override;
  bool end_array() override { return scopes_.pop_back(), true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override;

 private:
  enum class Scope : std::uint8_t {
    root,
    devices,
    device,
    distributed,
    groups,
    group,
    events,
    event,
    args,
    other
  };
  Scope scope() const { return scopes_.empty() ? Scope::other : scopes_.back(); }
  Scope object_scope() const;
  bool number(const std::string& token);
  bool time_of(const std::string& token, std::optional<std::int64_t>& out);
  void argument(const std::string& text);

  std::string path_;
  const TraceFile& file_;
  TraceCollector collector_;
  std::vector<Scope> scopes_;
  std::string key_;
  TraceEvent event_;
  std::size_t events_ = 0;
  bool seen_events_ = false;
};

Reader::Scope Reader::object_scope() const {
  if (scopes_.empty()) return Scope::root;
  if (scope() == Scope::events) return Scope::event;
  if (scope() == Scope::event && key_ == "args") return Scope::args;
  if (scope() == Scope::root && key_ == "distributedInfo") return Scope::distributed;
  if (scope() == Scope::groups) return Scope::group;
  return scope() == Scope::devices ? Scope::device : Scope::other;
}

bool Reader::start_object(std::size_t) {
  const Scope next = object_scope();
  if (next == Scope::event) event_ = {};
  if (next == Scope::device) ++collector_.trace().devices;
  if (next == Scope::group) collector_.trace().groups.emplace_back();
  scopes_.push_back(next);
  return true;
}

bool Reader::start_array(std::size_t) {
  const bool events = scopes_.empty() || (scope() == Scope::root && key_ == "traceEvents");
  seen_events_ = seen_events_ || events;
  Scope next = events ? Scope::events : Scope::other;
  if (!events && scope() == Scope::root && key_ == "deviceProperties") next = Scope::devices;
  if (scope() == Scope::distributed && key_ == "pg_config") next = Scope::groups;
  scopes_.push_back(next);
  return true;
}

bool Reader::end_object() {
  if (scope() == Scope::event) collector_.add(event_, events_++);
  scopes_.pop_back();
  return true;
}

bool Reader::key(std::string& name) {
  if (scope() != Scope::other) key_ = name;
  return true;
}

bool Reader::string(std::string& text) {
  if (scope() == Scope::args) argument(text);
  if (scope() == Scope::device && key_ == "name" && collector_.trace().gpu.empty())
    collector_.trace().gpu = text;
  if (scope() == Scope::distributed && key_ == "nccl_version") collector_.trace().nccl = text;
  if (scope() == Scope::group && key_ == "pg_desc")
    collector_.trace().groups.back().description = text;
  if (scope() != Scope::event) return true;
  if (key_ == "name") event_.name = text;
  if (key_ == "cat") event_.category = text;
  if (key_ == "ph") event_.phase = text;
  if (key_ == "tid" && text.starts_with("stream ")) event_.thread = integer_of(text.substr(7));
  return key_ == "ts" || key_ == "dur" ? number(text) : true;
}

bool Reader::number(const std::string& token) {
  switch (scope()) {
    case Scope::event:
      if (key_ == "ts") return time_of(token, event_.begin);
      if (key_ == "dur") return time_of(token, event_.duration);
      if (key_ == "tid") event_.thread = integer_of(token);
      return true;
    case Scope::args:
      argument(token);
      return true;
    case Scope::distributed:
      if (key_ == "rank") collector_.trace().rank = integer_of(token);
      if (key_ == "world_size") collector_.trace().world_size = integer_of(token);
      return true;
    case Scope::group:
      if (key_ == "pg_size") collector_.trace().groups.back().size = integer_of(token).value_or(0);
      return true;
    case Scope::groups:
    case Scope::root:
    case Scope::devices:
    case Scope::device:
    case Scope::events:
    case Scope::other:
      break;
  }
  return true;
}

bool Reader::time_of(const std::string& token, std::optional<std::int64_t>& out) {
  out = nanoseconds_of(token);
  if (out) return true;
  throw InputError(fmt::format("{}: traceEvents[{}]", path_, events_),
                   fmt::format("'{}' is no time in microseconds", printable(token)), "");
}

void Reader::argument(const std::string& text) {
  CollectiveFacts& facts = event_.facts;
  const auto integer = [&] { return integer_of(text); };
  if (key_ == "correlation") event_.correlation = integer();
  if (key_ == "stream") event_.stream = integer();
  if (key_ == "device") event_.device = integer().value_or(0);
  if (key_ == "Collective name") facts.collective = text, event_.has_facts = true;
  if (key_ == "Process Group Name") facts.group = text, event_.has_facts = true;
  if (key_ == "Process Group Ranks") facts.members = text;
  if (key_ == "Group size") facts.group_size = integer().value_or(0);
  if (key_ == "In msg nelems") facts.in = integer().value_or(-1);
  if (key_ == "Out msg nelems") facts.out = integer().value_or(-1);
  if (key_ == "dtype") facts.dtype = text;
  if (key_ == "Src Rank") facts.source = integer().value_or(-1);
  if (key_ == "Dst Rank") facts.destination = integer().value_or(-1);
}

bool Reader::parse_error(std::size_t position, const std::string&,
                         const nlohmann::detail::exception& error) {
  const std::string where = fmt::format("{}:byte {}", path_, position);
  const std::string_view what = error.what();
  // The parser counts the end of the file as a byte.
  if (static_cast<std::int64_t>(position) > file_.position())
    throw InputError(where, "the trace ends too early",
                     "the profiler may still be writing it, or the copy was cut off");
  if (what.find("UTF-8") != std::string_view::npos)
    throw InputError(where, "is not UTF-8 text", "is it a trace? gzip is recognised by itself");
  const std::size_t detail = what.find("- ");
  throw InputError(
      where,
      "is no JSON: " + printable(what.substr(detail == std::string_view::npos ? 0 : detail + 2)),
      profile_hint);
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
  std::istream text(&file);
  Reader reader(path, file);
  Json::sax_parse(text, &reader);
  return reader.finish();
}

}  // namespace stepcast::validate
