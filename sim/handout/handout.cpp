#include "sim/handout/handout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/units_text.hpp"
#include "sim/program/command_line.hpp"
#include "sim/program/today.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/sweep.hpp"
#include "sim/told/text.hpp"

namespace stepcast::sim {
namespace {

/// What the catalogue's file says; nothing of what is no entry of it.
std::vector<SourceNote> notes_of(const Catalogue& catalogue, const std::string& folder,
                                 const std::string& name) {
  const std::vector<std::string> names = catalogue.names(folder);
  if (std::ranges::count(names, name) == 0) return {};
  return catalogue.sources(folder, name);
}

/// Rows of inputs, each once.
class Inputs {
 public:
  explicit Inputs(const Catalogue& catalogue) : catalogue_(catalogue) {
    for (const char* heading : {"input", "what", "source"})
      table_.column(heading, "", TextTable::Align::left);
  }

  void add(const std::string& input, const std::string& what, const std::string& source) {
    if (seen_.insert(input + '\n' + what + '\n' + source).second) table_.row({input, what, source});
  }

  /// Rows of the notes in a catalogue file; one that says nothing is named as such.
  void add_entry(const std::string& folder, const std::string& name, const std::string& value) {
    std::vector<SourceNote> notes = notes_of(catalogue_, folder, name);
    if (notes.empty()) notes.push_back({"", "the scenario's own: no source is stated"});
    for (const SourceNote& note : notes)
      add(folder + "/" + name, note.key.empty() ? value : note.key, note.text);
  }

  TextTable take() { return std::move(table_); }

 private:
  const Catalogue& catalogue_;
  TextTable table_;
  std::set<std::string> seen_;
};

/// The entry of the catalogue that is this software; its own name where there is none.
std::string software_entry(const Catalogue& catalogue, const workloads::Software& software) {
  const auto says = [](const TomlValue& document, const char* key, const std::string& wanted) {
    const TomlValue* value = document.find(key);
    return value != nullptr && value->text() != nullptr && *value->text() == wanted;
  };
  for (const std::string& name : catalogue.names("software")) {
    const TomlValue& document = catalogue.entry("software", name, "report");
    if (says(document, "framework", software.framework) &&
        says(document, "version", software.version))
      return name;
  }
  return software.framework;
}

/// The file of NCCL's constants whose version begins this one the longest: "2.20" of "2.20.5".
std::string nccl_entry(const Catalogue& catalogue, const std::string& version) {
  std::string out = version;
  std::size_t longest = 0;
  for (const std::string& name : catalogue.names("nccl"))
    if (version.starts_with(name) && name.size() > longest) out = name, longest = name.size();
  return out;
}

std::string dated(const std::string& source, const std::string& date) {
  if (source.empty()) return "the user's own";
  return date.empty() ? source : source + ", " + date;
}

void add_inputs(Inputs& inputs, const Scenario& s, const Catalogue& catalogue) {
  inputs.add_entry(
      "gpus", s.node.gpu.name,
      fmt::format("{}, {} at 16 bit", to_text(s.node.gpu.memory), to_text(s.node.gpu.tensor_peak)));
  inputs.add_entry("nodes", s.node.name, "the node");
  inputs.add_entry("fabrics", s.fabric.name, "the fabric");
  inputs.add_entry("models", s.model.name, "the model");
  inputs.add_entry("software", software_entry(catalogue, s.software), software_text(s));
  inputs.add_entry("nccl", nccl_entry(catalogue, s.nccl), "NCCL " + s.nccl);
  inputs.add_entry("network", "fitted", "the network model's constants");
  for (const std::string& file : s.tables)
    inputs.add("kernel and collective times", file, "calibration table");
  if (s.cost.price.value > 0 || s.cost.capex.value > 0)
    inputs.add("price of a GPU", s.cost.own ? to_text(s.cost.capex) : to_text(s.cost.price),
               dated(s.cost.source, s.cost.date));
  inputs.add("PUE of the building", fmt::format("{:g}", s.site.pue),
             dated(s.site.source, s.site.date));
  if (s.site.carbon.value > 0)
    inputs.add("emissions of electricity", to_text(s.site.carbon),
               dated(s.site.source, s.site.date));
}

}  // namespace

ToldSection inputs_section(const std::vector<const Scenario*>& scenarios,
                           const Catalogue& catalogue) {
  Inputs inputs(catalogue);
  for (const Scenario* scenario : scenarios) add_inputs(inputs, *scenario, catalogue);
  return {"Inputs and their sources", {ToldTable{"Every input", inputs.take()}}};
}

ToldSection origin_section(const Origin& origin, const Scenario* scenario) {
  ToldSection out{"How this was made", {}};
  out.blocks.emplace_back(Listing{"Command line", origin.command, false});
  std::string version = version_text();
  version.pop_back();
  out.blocks.emplace_back(Paragraph{version + ", " + today() + "."});
  if (scenario != nullptr)
    out.blocks.emplace_back(
        Listing{"Resolved scenario (TOML)", write_toml(resolved_document(*scenario))});
  return out;
}

void write_handout(const HandoutFiles& files, const Told& page) {
  if (!files.svg.empty()) write_charts(files.svg, page);
  if (!files.report.empty()) write_page(files.report, page);
}

}  // namespace stepcast::sim
