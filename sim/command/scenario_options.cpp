#include "sim/command/scenario_options.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "sim/command/scenario_input.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/text_table.hpp"
#include "sim/scenario/scenario_keys.hpp"
#include "sim/study/sweep.hpp"
#include "workloads/plan/plan.hpp"

namespace stepcast::sim {
namespace {

/// --framework NAME[@VERSION]. Without a version that of the file does not hold: it is another's.
void choose_framework(TomlValue& document, const std::string& choice) {
  constexpr const char* where = "--framework";
  const std::size_t at = choice.find('@');
  override_key(document, "software.framework", toml_text(choice.substr(0, at), where));
  if (at != std::string::npos)
    override_key(document, "software.version", toml_text(choice.substr(at + 1), where));
  else
    document.find("software")->erase("version");
}

/// A length that nobody gave is said, as it decides much and is not that of the model.
void tell_assumed_sequence(const TomlValue& document) {
  if (find_path(document, "model.name") == nullptr) return;
  if (find_path(document, "model.sequence") != nullptr) return;
  const TomlValue* sweep = document.find("sweep");
  if (sweep != nullptr && write_toml_value(*sweep).find("sequence") != std::string::npos) return;
  tell(stderr, fmt::format("stepcast: the length of a sequence is not given: {} tokens are assumed "
                           "(--sequence)\n",
                           grouped(workloads::Batch{}.sequence)));
}

}  // namespace

std::vector<Option> with_scenario_options(std::initializer_list<std::string_view> tables,
                                          std::span<const Option> own) {
  std::vector<Option> out{gpu_option};
  for (const Option& option : key_options(tables)) out.push_back(option);
  out.insert(out.end(), {framework_option, nccl_env_option, set_option, scenario_out_option});
  out.insert(out.end(), own.begin(), own.end());
  return out;
}

TomlValue asked_document(const Verb& verb, const Arguments& arguments, const Catalogue& catalogue,
                         std::string_view own_table) {
  if (arguments.words().empty()) arguments.first("which scenario?");
  return asked_document(verb, arguments, catalogue, arguments.positional(), own_table);
}

TomlValue asked_document(const Verb& verb, const Arguments& arguments, const Catalogue& catalogue,
                         std::span<const std::string> files, std::string_view own_table) {
  ScenarioInput input;
  if (files.empty())
    input.document = toml_table("command line");
  else
    input = read_scenario_input(files, catalogue);
  apply_options(input.document, verb, arguments, catalogue, own_table);
  if (input.launch)  // of two that say the same the command line's holds
    for (const auto& [option, other] :
         {std::pair{"global-batch", "batch.local"}, {"local-batch", "batch.global"}})
      if (arguments.has(option)) erase_path(input.document, other);
  complete_input(input, arguments, catalogue);
  if (!arguments.has("quiet")) tell_assumed_sequence(input.document);
  return std::move(input.document);
}

void apply_options(TomlValue& document, const Verb& verb, const Arguments& arguments,
                   const Catalogue& catalogue, std::string_view own_table) {
  if (arguments.has("gpu")) {
    if (arguments.has("node")) throw UsageError("both --gpu and --node", "give one of them");
    const NodeOfGpu found = catalogue.node_of_gpu(arguments.get("gpu"), "--gpu");
    if (found.put_in) tell(stderr, "stepcast: " + found.note() + "\n");
    override_key(document, "cluster.node", found.value("--gpu"));
  }
  if (arguments.has("framework")) choose_framework(document, arguments.get("framework"));
  if (arguments.has("gpus")) {  // the nodes of a file follow from them
    override_key(document, "cluster.nodes", toml_text("", "--gpus"));
    document.find("cluster")->erase("nodes");
  }
  for (const auto& [key, value] : settings_of(verb, arguments)) {
    if (own_table.empty() || key.substr(0, key.find('.')) != own_table)
      check_known(key, value.where);
    override_key(document, key, value);
  }
}

}  // namespace stepcast::sim
