// stepcast export, replay: a step as Chakra traces, and such traces on a cluster.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/chakra/export.hpp"
#include "sim/chakra/replay.hpp"
#include "sim/command/commands.hpp"
#include "sim/command/scenario_options.hpp"
#include "sim/command/timeline_options.hpp"
#include "sim/files/json_text.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/form/form.hpp"
#include "sim/program/answer_forms.hpp"
#include "sim/scenario/file.hpp"
#include "sim/scenario/scenario_keys.hpp"
#include "sim/study/answer.hpp"
#include "sim/study/sweep.hpp"
#include "sim/timeline/timeline_file.hpp"

namespace stepcast::sim {
namespace {

constexpr Option export_options[] = {
    {"chakra", "DIR", "", "where: a new folder for NAME.RANK.et and comm_group.json"},
    {"ranks", "LIST", "",
     "all (default), as ASTRA-sim reads; classes: one file for those alike; or 0,8-15"},
    {"limit", "BYTES", "", "the most to write without asking (default: 200MB)"},
    {"json", "", "", "print JSON"},
    {"ignore-memory", "", "", "go on with a plan that does not fit in memory"},
};

const std::vector<Option>& all_export_options() {
  static const std::vector<Option> options = with_scenario_options(step_tables, export_options);
  return options;
}

const std::vector<Option>& replay_options() {
  static const std::vector<Option> options = [] {
    std::vector<Option> out{gpu_option};
    for (const Option& option : key_options({"cluster"})) out.push_back(option);
    out.insert(out.end(),
               {nccl_env_option,
                set_option,
                {"once", "", "", "one step from rest, as ASTRA-sim runs it; else steps repeat"},
                json_option,
                rows_option});
    return out;
  }();
  return options;
}

Verb export_verb() {
  return {"stepcast export",
          "[SCENARIO.toml]",
          1,
          "Writes one training step as Chakra traces (docs/traces.md).",
          all_export_options(),
          "stepcast export mine.toml --chakra step"};
}

Verb replay_verb() {
  return {"stepcast replay",
          "DIR",
          1,
          "Runs Chakra traces on a cluster: compute as recorded, collectives as its network "
          "makes them.",
          replay_options(),
          "stepcast replay step --gpu h100 --nodes 2"};
}

Scenario step_to_export(const Arguments& arguments, const Catalogue& catalogue, Session& session) {
  TomlValue document = asked_document(export_verb(), arguments, catalogue);
  for (const char* table : {"sweep", "collective"})
    if (document.find(table) != nullptr)
      throw UsageError("a trace is that of one step",
                       "give a scenario without [" + std::string(table) + "]");
  Scenario scenario = read_scenario(read_study(std::move(document)).base, catalogue);
  scenario.run.ignore_memory = arguments.has("ignore-memory");
  if (scenario.open.empty()) return scenario;
  const Answer best = answer(scenario, simulator_of(session));
  if (const auto* refused = std::get_if<Refused>(&best)) throw NoFeasiblePlan(refused->reason);
  return std::get<StepReport>(best).scenario;
}

struct Exported {
  std::string folder;
  ChakraExport out;
};

const Form<Exported>& export_form() {
  using E = const Exported&;
  static const Form<Exported> form =
      Form<Exported>()
          .has("folder", "Where the traces are.", [](E e) { return e.folder; })
          .has("files", "", [](E e) { return e.out.files; })
          .has("nodes", "Of the graphs.", [](E e) { return e.out.nodes; })
          .has("groups", "Process groups.", [](E e) { return e.out.groups; })
          .has("bytes", "Of all files.", [](E e) { return e.out.bytes; });
  return form;
}

int export_main(const Arguments& arguments, const Catalogue& catalogue) {
  if (!arguments.has("chakra"))
    throw UsageError("where shall the trace be written?", "--chakra DIR");
  Session session(catalogue);
  const RankChoice ranks = rank_choice(arguments.get("ranks", "all"), "ranks");
  const Bytes limit = arguments.has("limit") ? parse<Bytes>(arguments.get("limit"), "--limit")
                                             : usual_timeline_limit;
  const std::string folder = arguments.get("chakra");
  const ChakraExport out =
      export_trace(step_to_export(arguments, catalogue, session), session, folder, ranks, limit);
  if (arguments.has("json"))
    tell(stdout, json_text(stamped("export", export_form().json({folder, out}))) + "\n");
  else
    tell(stdout,
         fmt::format("{}: {} files, {} nodes, {} process groups, {}\n", folder, out.files,
                     out.nodes, out.groups, to_text(Bytes(static_cast<std::int64_t>(out.bytes)))));
  return exit_ok;
}

/// A scenario of nothing but the cluster: with the least that one can ask of it.
Scenario cluster_of(const Arguments& arguments, const Catalogue& catalogue) {
  TomlValue document = toml_table("command line");
  set_path(document, "collective.kind", toml_text("send_receive", "command line"));
  set_path(document, "collective.bytes", toml_text("1 B", "command line"));
  apply_options(document, replay_verb(), arguments, catalogue);
  return read_scenario(document, catalogue);
}

struct ReplayPart {
  const char *name, *key;
  Duration time;
};

std::vector<ReplayPart> parts_of(const Replay& r) {
  const auto exposed = [&](engine::Traffic traffic) {
    return r.mean.exposed[static_cast<std::size_t>(traffic)];
  };
  using engine::Traffic;
  return {{"compute", "compute_s", r.mean.compute},
          {"exposed: tensor", "exposed_tensor_s", exposed(Traffic::tensor)},
          {"exposed: data and others", "exposed_data_s", exposed(Traffic::data)},
          {"exposed: experts", "exposed_expert_s", exposed(Traffic::expert)},
          {"exposed: messages", "exposed_pipeline_s", exposed(Traffic::pipeline)},
          {"waiting for a sender", "bubble_s", r.mean.bubble},
          {"waiting for a group", "wait_s", r.mean.wait},
          {"host", "host_s", r.mean.host}};
}

std::string replay_text(const Replay& r, const Scenario& scenario, const std::string& folder) {
  std::string out = fmt::format(
      "{}: {} nodes in {} file{} of {} ranks, {} process groups\non {} x {}, {} ranks "
      "simulated\n\n",
      folder, r.nodes, r.files, r.files == 1 ? "" : "s", r.ranks, r.groups, scenario.nodes,
      scenario.node.name, r.simulated_ranks);
  out += fmt::format("{:<28}{}\n", "step", to_text(r.step));
  for (const ReplayPart& part : parts_of(r))
    if (part.time > Duration{})
      out += fmt::format("  {:<26}{:<12}{:.1f} %\n", part.name, to_text(part.time),
                         100.0 * seconds(part.time) / seconds(r.step));
  out +=
      fmt::format("most compute                {} (rank {})\n", to_text(r.slowest), r.slowest_rank);
  if (r.recorded > Duration{})
    out += fmt::format("recorded step               {} ({:+.2f} %)\n", to_text(r.recorded),
                       100.0 * (seconds(r.step) / seconds(r.recorded) - 1.0));
  for (const std::string& warning : r.warnings) out += "warning: " + warning + "\n";
  return out;
}

const Form<Replay>& replay_form() {
  using R = const Replay&;
  static const Form<Replay> form = [] {
    Form<Replay> out;
    out.has("step_s", "The step.", [](R r) { return seconds(r.step); })
        .has("ranks", "Of the trace.", [](R r) { return r.ranks; })
        .has("files", "", [](R r) { return r.files; })
        .has("nodes", "Of the traces' graphs.", [](R r) { return r.nodes; })
        .has("groups", "Process groups.", [](R r) { return r.groups; })
        .has("simulated_ranks", "The others are like one of them.",
             [](R r) { return r.simulated_ranks; })
        .has("most_compute_s", "Of the rank that computes most.",
             [](R r) { return seconds(r.slowest); })
        .has("most_compute_rank", "That rank.", [](R r) { return r.slowest_rank; });
    const std::vector<ReplayPart> parts = parts_of({});
    for (std::size_t i = 0; i < parts.size(); ++i)
      out.has(parts[i].key, "Mean over ranks: " + std::string(parts[i].name) + ".",
              [i](R r) { return seconds(parts_of(r)[i].time); });
    return out
        .has("recorded_step_s", "As the traces have it.",
             [](R r) {
               return r.recorded > Duration{} ? std::optional(seconds(r.recorded)) : std::nullopt;
             })
        .has("warnings", "What to know before trusting the numbers.",
             [](R r) { return r.warnings; });
  }();
  return form;
}

std::string replay_json(const Replay& r) {
  return json_text(stamped("replay", replay_form().json(r)));
}

nlohmann::ordered_json export_schema() {
  return document_schema("export", "What stepcast export prints.", export_form().schema_of());
}
nlohmann::ordered_json replay_schema() {
  return document_schema("replay", "What stepcast replay prints.", replay_form().schema_of());
}

int replay_main(const Arguments& arguments, const Catalogue& catalogue) {
  check_forms(arguments);
  const std::string folder = arguments.first("which folder with a Chakra trace?");
  const Scenario scenario = cluster_of(arguments, catalogue);
  Session session(catalogue);
  const Replay out = replay(read_trace(folder), scenario, session, arguments.has("once"));
  const AnswerForms forms{
      [&] { return replay_text(out, scenario, folder); }, [&] { return replay_json(out); }, {}};
  return print_answer(arguments, forms) ? exit_ok : exit_unwritten;
}

}  // namespace

Command export_command() {
  return {.verb = export_verb(), .run = export_main, .schema = export_schema};
}
Command replay_command() {
  return {.verb = replay_verb(), .run = replay_main, .schema = replay_schema};
}

}  // namespace stepcast::sim
