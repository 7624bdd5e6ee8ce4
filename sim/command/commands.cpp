#include "sim/command/commands.hpp"

#include <nlohmann/json.hpp>

#include "sim/command/kept_plans.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/output/stored_study.hpp"
#include "sim/told/json.hpp"

namespace stepcast::sim {
namespace {

constexpr Verb calibrate_verb{"stepcast calibrate",
                              "VERB [arguments]",
                              0,
                              "Measures this machine, imports measurements (stepcast-calibrate).",
                              {},
                              "stepcast calibrate --help"};
constexpr Verb validate_verb{"stepcast validate",
                             "VERB [arguments]",
                             0,
                             "Measured beside simulated (stepcast-validate).",
                             {},
                             "stepcast validate --help"};
constexpr Verb diagnose_verb{"stepcast diagnose",
                             "FILE...",
                             1 << 20,
                             "Why a run of your own is slower than expected (stepcast-validate).",
                             {},
                             "stepcast diagnose train.log"};

/// Documents that more than one verb writes, or a verb beside its answer.
constexpr std::pair<const char*, nlohmann::ordered_json (*)()> other_documents[] = {
    {"error", error_schema},
    {"sweep-status", sweep_status_schema},
    {"plans-status", plans_status_schema},
    {"shard", shard_schema}};

/// Documents of a verb that has them within a sister program's.
constexpr std::pair<const char*, const char*> sister_documents[] = {{"card", "stepcast-calibrate"}};

}  // namespace

std::vector<Command> all_commands() {
  return {run_command(),
          sweep_command(),
          collective_command(),
          search_command(),
          design_command(),
          compare_command(),
          why_command(),
          export_command(),
          replay_command(),
          goodput_command(),
          report_command(),
          launch_command(),
          convert_command(),
          show_command(),
          explain_command(),
          import_model_command(),
          {diagnose_verb, nullptr, "stepcast-validate", "diagnose"},
          new_command(),
          mcp_command(),
          {calibrate_verb, nullptr, "stepcast-calibrate"},
          {validate_verb, nullptr, "stepcast-validate"}};
}

std::vector<std::string> schema_names() {
  std::vector<std::string> out;
  for (const Command& command : all_commands())
    if (command.schema != nullptr || *command.sister_verb != '\0')
      out.push_back(command.verb.word());
  for (const auto& [name, schema] : other_documents) out.emplace_back(name);
  for (const auto& [name, sister] : sister_documents) out.emplace_back(name);
  return out;
}

nlohmann::ordered_json schema_named(const std::string& name) {
  for (const Command& command : all_commands()) {
    if (command.verb.word() != name) continue;
    if (*command.sister_verb != '\0')
      become_sister(command.sister, {"schema", command.sister_verb});
    if (command.schema != nullptr) return command.schema();
  }
  for (const auto& [other, schema] : other_documents)
    if (name == other) return schema();
  for (const auto& [other, sister] : sister_documents)
    if (name == other) become_sister(sister, {"schema", name});
  throw UsageError("'" + name + "' prints no JSON", suggestion(name, schema_names()));
}

}  // namespace stepcast::sim
