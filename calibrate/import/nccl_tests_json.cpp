#include "calibrate/import/nccl_tests_json.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "engine/check.hpp"

namespace stepcast::calibrate {
namespace {

using nlohmann::json;

/// Walks over the text and counts lines where everybody can see it: the parser tells no positions.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::int64_t* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }

 private:
  const char* at_;
  std::int64_t* line_;
};

/// nccl-tests writes its doubles whole; who copies the file may round them as the text has them.
constexpr double printed_to = 0.005;

struct Document {
  json root;
  std::vector<std::int64_t> result_lines, device_lines;
  std::string program;  // the last component of args[0]
};

class JsonReader {
 public:
  JsonReader(const std::string& path, Ignored& ignored) : path_(path), ignored_(ignored) {}

  NcclTestsRun read(std::string_view text) {
    parse(text);
    check_version();
    NcclTestsRun run;
    run.path = path_;
    run.line = 1;
    run.program = document_.program;
    if (const auto code = document_.root.find("nccl_version"); code != document_.root.end())
      run.nccl = nccl_of_code(integer(*code, "nccl_version", 1)).value_or("");
    config(run);
    results(run);
    return run;
  }

 private:
  [[noreturn]] void fail(std::int64_t line, const std::string& what,
                         const std::string& hint = {}) const {
    throw InputError(path_ + ":" + std::to_string(line), what, hint);
  }

  void parse(std::string_view text) {
    std::int64_t line = 1;
    std::string top, second;  // the keys of the first and second level that we are in
    const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
      if (event == json::parse_event_t::key && depth <= 2)
        (depth == 1 ? top : second) = parsed.get<std::string>();
      if (event == json::parse_event_t::object_start && depth == 2 && top == "results")
        document_.result_lines.push_back(line);
      if (event == json::parse_event_t::object_start && depth == 3 && second == "devices")
        document_.device_lines.push_back(line);
      if (event == json::parse_event_t::value && depth == 2 && top == "args" &&
          document_.program.empty() && parsed.is_string()) {
        const std::string path = parsed.get<std::string>();
        document_.program = path.substr(path.rfind('/') + 1);
      }
      // The environment never becomes part of the document; of the arguments the program's name.
      const bool secret =
          event == json::parse_event_t::key && depth == 1 && (top == "env" || top == "args");
      if (secret && top == "env")
        ignored_.add("the environment of the process, which may hold secrets", line);
      if (secret && top == "args") ignored_.add("the arguments behind the program's name", line);
      return !secret;
    };
    try {
      document_.root = json::parse(CountingIterator(text.data(), &line),
                                   CountingIterator(text.data() + text.size(), &line), watch);
    } catch (const json::exception& error) {
      fail(line, "is not JSON", "was the file cut? (" + problem(error.what()) + ")");
    }
    if (!document_.root.is_object()) fail(1, "is no object", "nccl-tests -J writes one");
  }

  /// The parser's own words without its number and position.
  static std::string problem(std::string text) {
    if (const std::size_t at = text.find("syntax error"); at != std::string::npos)
      text = text.substr(at);
    std::erase_if(text, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
    return text.substr(0, 100);
  }

  void check_version() const {
    const auto version = document_.root.find("version");
    if (version == document_.root.end() || !document_.root.contains("results"))
      fail(1, "is JSON, but not of nccl-tests", "nccl-tests -J FILE writes version and results");
    const std::int64_t number = integer(*version, "version", 1);
    if (number < 1 || number > 3)
      fail(1, "is of version " + std::to_string(number) + " of nccl-tests' format",
           "1 to 3 are understood");
  }

  void config(NcclTestsRun& run) {
    const auto found = document_.root.find("config");
    if (found == document_.root.end() || !found->is_object()) fail(1, "lacks \"config\"");
    const json& config = *found;
    run.gpus_per_process = count(config, "nthreads", 1) * count(config, "ngpus", 1);
    if (config.contains("graph") && integer(config["graph"], "graph", 1) != 0)
      ignored_.add("that the calls ran as a CUDA graph", 1);
    const auto devices = config.find("devices");
    if (devices == config.end() || !devices->is_array()) fail(1, "lacks \"devices\"");
    for (std::size_t i = 0; i < devices->size(); ++i) {
      const json& entry = (*devices)[i];
      const std::int64_t line = line_of(document_.device_lines, i);
      if (!entry.is_object()) fail(line, "a device that is no object");
      NcclTestsDevice device;
      device.line = line;
      device.rank = integer(member(entry, "rank", line), "rank", line);
      if (device.rank < 0) fail(line, "a rank below zero");
      device.group = entry.contains("group") ? integer(entry["group"], "group", line) : 0;
      device.host = text(member(entry, "hostname", line), "hostname", line);
      device.process =
          std::to_string(integer(member(entry, "pid", line), "pid", line)) + "@" + device.host;
      device.gpu = text(member(entry, "device_info", line), "device_info", line);
      run.devices.push_back(std::move(device));
    }
  }

  void results(NcclTestsRun& run) {
    const json& results = document_.root["results"];
    if (!results.is_array()) fail(1, "\"results\" is no list");
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::int64_t line = line_of(document_.result_lines, i);
      const json& entry = results[i];
      if (!entry.is_object()) fail(line, "a result that is no object");
      NcclTestsRow row;
      row.line = line;
      row.bytes = integer(member(entry, "size", line), "size", line);
      if (row.bytes < 0) fail(line, "a size below zero");
      row.type = text(member(entry, "type", line), "type", line);
      row.out_of_place = figure(entry, "out_of_place", row.bytes, line);
      row.in_place = figure(entry, "in_place", row.bytes, line);
      if (entry.contains("out_of_place_per_iter") || entry.contains("in_place_per_iter"))
        ignored_.add("the times of single iterations", line);
      run.rows.push_back(std::move(row));
    }
    const auto errors = document_.root.find("errors");
    if (errors != document_.root.end() && errors->is_array())
      for (const json& error : *errors)
        if (error.is_string() && !error.get<std::string>().empty())
          ignored_.add("an error text of NCCL", 1);
  }

  std::optional<NcclTestsFigure> figure(const json& entry, const char* name, std::int64_t bytes,
                                        std::int64_t line) const {
    const auto found = entry.find(name);
    if (found == entry.end() || found->is_null()) return std::nullopt;
    if (!found->is_object()) fail(line, std::string("\"") + name + "\" is no object");
    if (found->contains("cpu_time"))
      fail(line, "the times are those of the launches alone (-C)", "measure without -C");
    NcclTestsFigure figure;
    const auto printed = [&](const char* key) {
      return NcclTestsNumber{number(member(*found, key, line), key, line), printed_to};
    };
    figure.time_us = printed("time");
    if (bytes > 0 && (figure.time_us.value <= 0 || figure.time_us.value > 1e12))
      fail(line, "a time that is no time of a collective");
    figure.algbw = printed("alg_bw");
    figure.busbw = printed("bus_bw");
    if (const auto wrong = found->find("nwrong"); wrong != found->end() && !wrong->is_null())
      figure.wrong = number(*wrong, "nwrong", line);
    return figure;
  }

  static std::int64_t line_of(const std::vector<std::int64_t>& lines, std::size_t i) {
    return i < lines.size() ? lines[i] : 1;
  }

  const json& member(const json& object, const char* name, std::int64_t line) const {
    const auto found = object.find(name);
    if (found == object.end()) fail(line, std::string("lacks \"") + name + "\"");
    return *found;
  }

  std::int64_t count(const json& object, const char* name, std::int64_t line) const {
    const std::int64_t value = integer(member(object, name, line), name, line);
    if (value < 1 || value > 1024) fail(line, std::string("\"") + name + "\" is no small number");
    return value;
  }

  std::int64_t integer(const json& value, const char* name, std::int64_t line) const {
    // 2^53: sizes come as whole numbers, and beyond it no size is real.
    const bool whole = value.is_number_integer();
    if (!whole || std::abs(value.get<double>()) > 9e15)
      fail(line, std::string("\"") + name + "\" is no whole number");
    return value.get<std::int64_t>();
  }

  double number(const json& value, const char* name, std::int64_t line) const {
    if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0)
      fail(line, std::string("\"") + name + "\" is no number");  // "nan" is a text there
    return value.get<double>();
  }

  std::string text(const json& value, const char* name, std::int64_t line) const {
    if (!value.is_string()) fail(line, std::string("\"") + name + "\" is no text");
    return value.get<std::string>();
  }

  const std::string& path_;
  Ignored& ignored_;
  Document document_;
};

}  // namespace

NcclTestsRun parse_nccl_tests_json(const std::string& path, std::string_view text,
                                   Ignored& ignored) {
  return JsonReader(path, ignored).read(text);
}

}  // namespace stepcast::calibrate
