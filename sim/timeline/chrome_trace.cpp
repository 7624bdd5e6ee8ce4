// Chrome's trace event format: JSON that chrome://tracing, Perfetto and most scripts read. Slices
// are complete events ("X"), counters "C", arrows "s" and "f"; times in microseconds to the
// picosecond.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/files/json_text.hpp"
#include "sim/timeline/timeline_file.hpp"
#include "sim/timeline/trace_writer.hpp"

namespace stepcast::sim {
namespace {

/// Microseconds to the picosecond.
std::string in_us(Duration d) {
  const std::int64_t ps = d.count();
  return fmt::format("{}{}.{:06}", ps < 0 ? "-" : "", std::abs(ps / 1000000),
                     std::abs(ps % 1000000));
}

std::string in_quotes(std::string_view text) { return json_text(nlohmann::ordered_json(text)); }

std::string json_of(const TraceArg& arg) {
  struct Printer {
    std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(double value) const { return fmt::format("{}", value); }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(std::string_view value) const { return in_quotes(value); }
    std::string operator()(Duration value) const { return in_us(value); }
  };
  return std::visit(Printer{}, arg.value);
}

std::string members(std::span<const TraceArg> args) {
  std::string out;
  for (const TraceArg& arg : args)
    out += fmt::format("{}\"{}\":{}", out.empty() ? "" : ",", arg.name, json_of(arg));
  return out;
}

class ChromeTrace final : public TraceWriter {
 public:
  ChromeTrace(std::string& out, const std::string& facts) : out_(out) {
    out_ += timeline_head;
    out_ += facts + "},\"traceEvents\":[\n";
  }

  void process(std::int64_t process, std::string_view name,
               std::span<const TraceArg> args) override {
    event(R"("ph":"M","name":"process_name","pid":{},"args":{{"name":{}{}{}}})", process,
          in_quotes(name), args.empty() ? "" : ",", members(args));
  }

  void track(std::int64_t process, std::int64_t track, std::string_view name) override {
    event(R"("ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}})", process, track,
          in_quotes(name));
    event(R"("ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}})",
          process, track, track);
  }

  void slice(const TraceSlice& s) override {
    event(R"("ph":"X","pid":{},"tid":{},"name":{},"cat":{},"ts":{},"dur":{},"args":{{{}}})",
          s.process, s.track, in_quotes(s.name), in_quotes(s.category), in_us(s.start),
          in_us(s.duration), members(s.args));
  }

  void counter(std::int64_t process, std::int64_t index, std::string_view name,
               std::string_view unit) override {
    counters_[{process, index}] = {in_quotes(name), in_quotes(unit)};
  }

  void value(std::int64_t process, std::int64_t index, Duration when, double value) override {
    const auto& [name, unit] = counters_.at({process, index});
    event(R"("ph":"C","pid":{},"name":{},"ts":{},"args":{{{}:{}}})", process, name, in_us(when),
          unit, value);
  }

  void arrow(const TraceArrow& a) override {
    event(R"("ph":"s","id":{},"pid":{},"tid":{},"name":{},"cat":{},"ts":{})", a.number,
          a.from_process, a.from_track, in_quotes(a.name), in_quotes(a.category), in_us(a.from));
    event(R"("ph":"f","bp":"e","id":{},"pid":{},"tid":{},"name":{},"cat":{},"ts":{})", a.number,
          a.to_process, a.to_track, in_quotes(a.name), in_quotes(a.category), in_us(a.to));
  }

  void finish() override { out_ += "\n]}\n"; }

 private:
  template <class... Values>
  void event(fmt::format_string<Values...> members, Values&&... values) {
    out_ += first_ ? "{" : ",\n{";
    first_ = false;
    fmt::format_to(std::back_inserter(out_), members, std::forward<Values>(values)...);
    out_ += "}";
  }

  std::string& out_;
  bool first_ = true;
  std::map<std::pair<std::int64_t, std::int64_t>, std::pair<std::string, std::string>> counters_;
};

}  // namespace

std::unique_ptr<TraceWriter> chrome_trace(std::string& out, const std::string& facts) {
  return std::make_unique<ChromeTrace>(out, facts);
}

}  // namespace stepcast::sim
