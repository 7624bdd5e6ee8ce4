#include "sim/command/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "engine/units_text.hpp"
#include "sim/files/names.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/network/nccl/tuner.hpp"
#include "sim/program/table_view.hpp"
#include "sim/run/session.hpp"
#include "sim/scenario/file.hpp"

namespace stepcast::sim {
namespace {

using workloads::CollectiveKind;

/// What the answer to one collective has and this one has not.
void check_tune_options(const Arguments& arguments) {
  for (const char* option : {"bytes", "stepped", "explain", "json", "out", "threads"})
    if (arguments.has(option))
      throw UsageError(
          fmt::format("--{} beside --tune", option),
          "--tune weighs 1 KiB to 4 GiB and writes one file; --csv FILE has the table");
}

std::vector<CollectiveKind> kinds_asked(const Arguments& arguments) {
  std::vector<CollectiveKind> all;
  for (const auto& word : collective_words)
    if (choice_index(word.value)) all.push_back(word.value);
  if (arguments.positional().empty()) return all;
  const std::string& asked = arguments.positional().front();
  const auto kind = collective_named(asked);
  if (!kind || !choice_index(*kind))
    throw UsageError("NCCL chooses no algorithm for '" + asked + "'",
                     "all_reduce, all_gather, reduce_scatter, broadcast, reduce, or none: all");
  return {*kind};
}

Scenario cluster_of(TomlValue document, const Catalogue& catalogue) {
  set_path(document, "collective.kind", toml_text("all_reduce", "--tune"));
  set_path(document, "collective.bytes", toml_text("1 MiB", "--tune"));
  return read_scenario(document, catalogue);
}

std::string way_text(const TunerChoice::Way& way) {
  return fmt::format("{} {}", name_of(way.algorithm), name_of(way.protocol));
}

/// A row for every choice that is not NCCL's; where none is, the table is empty.
TextTable tuner_table(const std::vector<TunerChoice>& choices) {
  TextTable table;
  table.column("collective", "", TextTable::Align::left);
  table.column("nodes");
  table.column("ranks");
  table.column("bytes", "", TextTable::Align::right, "bytes");
  table.column("NCCL's", "", TextTable::Align::left, "usual");
  table.column("time", "us", TextTable::Align::right, "usual_us");
  table.column("fastest", "", TextTable::Align::left, "fastest");
  table.column("time", "us", TextTable::Align::right, "fastest_us");
  table.column("gain", "", TextTable::Align::right, "gain");
  table.column("channels");
  for (const TunerChoice& c : choices) {
    if (!c.differs()) continue;
    table.row({word_for(collective_names, c.kind), counted(c.shape.nodes), counted(c.shape.ranks),
               TableCell(to_text(c.bytes), c.bytes.value), way_text(c.usual),
               rounded(1e6 * seconds(c.usual.duration)), way_text(c.taken),
               rounded(1e6 * seconds(c.taken.duration)), rounded(c.gain()),
               counted(c.taken.channels)});
  }
  return table;
}

std::string summary(const std::vector<TunerChoice>& choices, const std::string& cluster,
                    double least_gain) {
  const auto differ = std::ranges::count_if(choices, &TunerChoice::differs);
  double most = 1.0;
  for (const TunerChoice& c : choices) most = std::max(most, c.gain());
  std::string out = fmt::format(
      "{}: of {} sizes and groups {} are faster by {:.3g} % or more another way than "
      "NCCL's",
      cluster, grouped(std::ssize(choices)), grouped(differ), 100 * least_gain);
  return out + (differ > 0 ? fmt::format(", the most {:.3g} times.\n", most) : ".\n");
}

}  // namespace

int tune_collectives(TomlValue document, const Arguments& arguments, const Catalogue& catalogue) {
  check_tune_options(arguments);
  const std::vector<CollectiveKind> kinds = kinds_asked(arguments);
  const TableView view(arguments);
  view.check(tuner_table({}));
  const Scenario scenario = cluster_of(std::move(document), catalogue);
  Session session(catalogue);
  const auto network = session.network(scenario);
  if (!network->nccl)
    throw InputError(scenario.origin, "runs no NCCL", "--tune is for clusters of GPUs");
  const TunerQuestion question{network->cluster(),
                               network->router(),
                               *network->nccl,
                               scenario.nccl_overrides,
                               scenario.collective->dtype,
                               arguments.share("least-gain").value_or(0.1)};
  const std::vector<GroupShape> shapes = tuner_shapes(network->cluster());
  std::vector<TunerChoice> choices;
  for (const CollectiveKind kind : kinds) {
    const auto of_kind = tuner_choices(question, kind, shapes);
    choices.insert(choices.end(), of_kind.begin(), of_kind.end());
  }
  const std::string cluster = fmt::format("{} x {} with NCCL {}", scenario.gpus,
                                          scenario.node.gpu.name, question.nccl.tuning.version);
  const std::string told = summary(choices, cluster, question.least_gain);
  const std::string file = arguments.get("tune");
  const std::string text = tuner_file(
      choices, {"stepcast, " + told.substr(0, told.size() - 1),
                "NCCL_TUNER_PLUGIN=libnccl-tuner-example.so NCCL_TUNER_CONFIG_FILE=this file",
                "A call that no line is for keeps its algorithm and gets one channel."});
  if (file == "-") {
    tell(stdout, text);
    return exit_ok;
  }
  const TextTable table = view.arranged(tuner_table(choices));
  tell(stdout, (view.prints_csv() ? "" : told) + view.text(table));
  for (const std::string& warning : network->warnings) tell(stderr, "Warning: " + warning + "\n");
  write_whole(file, text);
  view.write(table);
  return exit_ok;
}

}  // namespace stepcast::sim
