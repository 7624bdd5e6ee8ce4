#include "validate/trainer/run/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/input_file.hpp"
#include "sim/files/json_text.hpp"
#include "sim/files/whole_file.hpp"

namespace stepcast::validate {
namespace {

using stepcast::to_text;

using ResultsJson = nlohmann::ordered_json;

constexpr const char* format_name = "stepcast-trainer run";
constexpr int format_version = 1;

ResultsJson json_of(const PartTime& part) {
  return {{"name", part.name},
          {"kind", part.kind},
          {"group", part.group},
          {"calls", part.calls},
          {"time_s", seconds(part.time)}};
}

PartTime part_of(const ResultsJson& json) {
  return {json.at("name").get<std::string>(), json.at("kind").get<std::string>(),
          json.at("group").get<std::string>(), json.at("calls").get<double>(),
          to_duration(json.at("time_s").get<double>())};
}

ResultsJson json_of(const TrainerResults& results) {
  ResultsJson json{{"format", format_name},
                   {"version", format_version},
                   {"ranks", results.ranks},
                   {"device", results.device},
                   {"first_step", results.first_step},
                   {"warm_up", results.warm_up},
                   {"step_time_s", seconds(results.step_time)},
                   {"step_times_s", ResultsJson::array()},
                   {"losses", results.losses},
                   {"buffers_bytes_per_rank", results.buffers.value},
                   {"resident_bytes_per_rank", results.resident.value},
                   {"parts", ResultsJson::array()}};
  for (const Duration time : results.step_times) json["step_times_s"].push_back(seconds(time));
  for (const PartTime& part : results.parts) json["parts"].push_back(json_of(part));
  return json;
}

TrainerResults results_of(const ResultsJson& json) {
  TrainerResults results;
  results.ranks = json.at("ranks").get<std::int64_t>();
  results.device = json.at("device").get<std::string>();
  results.first_step = json.at("first_step").get<std::int64_t>();
  results.warm_up = json.at("warm_up").get<std::int64_t>();
  results.step_time = to_duration(json.at("step_time_s").get<double>());
  for (const ResultsJson& time : json.at("step_times_s"))
    results.step_times.push_back(to_duration(time.get<double>()));
  results.losses = json.at("losses").get<std::vector<double>>();
  results.buffers = Bytes(json.at("buffers_bytes_per_rank").get<std::int64_t>());
  results.resident = Bytes(json.at("resident_bytes_per_rank").get<std::int64_t>());
  for (const ResultsJson& part : json.at("parts")) results.parts.push_back(part_of(part));
  return results;
}

}  // namespace

void write_results(const std::string& path, const TrainerResults& results) {
  sim::write_whole(path, sim::json_text(json_of(results), 1) + "\n");
}

TrainerResults read_results(const std::string& path) {
  try {
    const ResultsJson json = sim::parsed_ordered_json(sim::read_input(path));
    if (json.at("format") != format_name || json.at("version") != format_version)
      throw InputError(path, "was written by another version of stepcast-trainer");
    return results_of(json);
  } catch (const ResultsJson::exception& error) {
    throw InputError(path, "is no file of results", error.what());
  }
}

std::string text_of_results(const TrainerResults& results) {
  const StepParts parts = parts_of(results.timeline);
  const auto [fastest, slowest] = std::ranges::minmax(results.step_times);
  std::string text =
      fmt::format("step time      {} (median of {}, {} to {})\n", to_text(results.step_time),
                  results.step_times.size(), to_text(fastest), to_text(slowest));
  text += fmt::format("compute        {}\n", to_text(parts.compute));
  text += fmt::format("communication  {} exposed, {} waiting\n", to_text(parts.exposed_total()),
                      to_text(parts.wait + parts.bubble));
  text += fmt::format("memory         {} of buffers on the fullest of {} ranks\n",
                      to_text(results.buffers), results.ranks);
  if (results.losses.empty())
    return text + "loss           none: kernels were waited for, not run\n";
  text += fmt::format("loss           {:.4f} in step {}, {:.4f} in step {}\n",
                      results.losses.front(), results.first_step, results.losses.back(),
                      results.first_step + static_cast<std::int64_t>(results.losses.size()) - 1);
  return text;
}

}  // namespace stepcast::validate
