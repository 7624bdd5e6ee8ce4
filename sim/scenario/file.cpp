#include "sim/scenario/file.hpp"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "engine/check.hpp"
#include "sim/files/csv.hpp"
#include "sim/files/numbers.hpp"
#include "sim/scenario/default_software.hpp"
#include "sim/scenario/failure_keys.hpp"
#include "sim/scenario/goal_file.hpp"
#include "sim/scenario/machine_rules.hpp"
#include "sim/scenario/member_reader.hpp"
#include "sim/scenario/noise_keys.hpp"
#include "sim/scenario/order_file.hpp"
#include "sim/scenario/scenario_keys.hpp"
#include "sim/scenario/stage_layout.hpp"
#include "sim/scenario/what_if.hpp"
#include "topology/rack.hpp"
#include "workloads/plan/model_size.hpp"

namespace stepcast::sim {
namespace {

/// Largest cluster that the data structures are made for (ranks are counted in 32 bits elsewhere).
constexpr std::int64_t max_gpus = 4'000'000;

/// What would use so many GPUs of racks.
std::string part_of_a_rack(const topology::NodeSpec& node, std::int64_t gpus) {
  const std::int64_t used = topology::even_domain(node, gpus);
  if (node.gpus_per_tray == 0 || used == 0) return {};
  return "; gpus_per_domain = " + std::to_string(used) + " uses as many of each rack's";
}

/// `nodes` and `gpus`, of which one is enough.
void read_size(TableReader& table, Scenario& scenario) {
  const std::int64_t in_node = scenario.node.gpus;
  const auto text = [](std::int64_t count) { return std::to_string(count); };
  const bool by_gpus = table.value("gpus") != nullptr;
  const auto limit = [&](const char* key, std::int64_t count) {
    if (count > max_gpus) table.fail(key, "more than " + text(max_gpus) + " GPUs");
  };
  limit("nodes", scenario.nodes);
  if (!by_gpus) scenario.gpus = scenario.nodes * in_node;
  limit(by_gpus ? "gpus" : "nodes", scenario.gpus);
  if (by_gpus && table.value("nodes") == nullptr && scenario.gpus > in_node) {
    scenario.nodes = scenario.gpus / in_node;
    if (scenario.gpus % in_node != 0)
      table.fail("gpus",
                 text(scenario.gpus) + " GPUs are no whole nodes of " + text(in_node) + " (" +
                     scenario.node.name + ")",
                 text(scenario.nodes * in_node) + " or " + text((scenario.nodes + 1) * in_node) +
                     " are" + part_of_a_rack(scenario.node, scenario.gpus));
  }
  const bool part_of_a_node = scenario.nodes == 1 && scenario.gpus < in_node;
  if (scenario.gpus != scenario.nodes * in_node && !part_of_a_node)
    table.fail("gpus",
               text(scenario.gpus) + " GPUs are not " + text(scenario.nodes) + " nodes of " +
                   text(in_node),
               "give one of the two; fewer GPUs than a node's are on one node");
}

void read_cluster(TableReader& table, const Catalogue& catalogue, Scenario& scenario) {
  scenario.nccl.clear();  // follows from framework and GPU where it is not written
  read_members(table, false, [&](auto&& visit) { visit_cluster(scenario, visit); });
  scenario.node = catalogue.node(*table.required("node", table.value("node")), &scenario.changed);
  if (scenario.gpus_per_domain > 0)
    scenario.node = topology::with_gpus(std::move(scenario.node), scenario.gpus_per_domain,
                                        table.where("gpus_per_domain"));
  read_size(table, scenario);
  if (!scenario.exchange.empty())
    chosen_exchange_kernels(catalogue.exchanges(), scenario.exchange, table.where("exchange"));
  static const std::string usual = "rail-optimized";
  const TomlValue* fabric = table.value("fabric");
  const topology::JobPlace job = scenario.fabric.job;
  scenario.fabric = catalogue.fabric(fabric != nullptr ? *fabric : toml_text(usual, table.where()),
                                     &scenario.changed);
  scenario.fabric.job = job;
  if (!scenario.nccl.empty()) catalogue.nccl(scenario.nccl, table.where("nccl"));  // is known
  table.finish();
}

/// [nccl]: NCCL's own variables as keys, numbers with or without quotes.
void read_nccl(const TomlValue* table, const Catalogue& catalogue, Scenario& scenario) {
  if (table == nullptr) return;
  for (const TomlEntry& entry : *table->table()) {
    NcclVariable variable{entry.key, {}, entry.where};
    if (const auto* text = entry.value.text())
      variable.value = *text;
    else if (const auto* number = std::get_if<std::int64_t>(&entry.value.data))
      variable.value = std::to_string(*number);
    else if (const auto* flag = std::get_if<bool>(&entry.value.data))
      variable.value = *flag ? "true" : "false";
    else
      throw InputError(entry.where, "'" + entry.key + "' in [nccl] must be a string or a number",
                       "e.g. NCCL_ALGO = \"Ring,Tree\"");
    scenario.changed.push_back("nccl." + variable.name);
    scenario.nccl_variables.push_back(std::move(variable));
  }
  scenario.nccl_overrides = nccl_overrides(scenario.nccl_variables);
  check_nccl_variables(scenario.nccl_variables, catalogue.nccl(scenario.nccl).tuning);
}

/// A file beside the one that `where` stands in, if it is there; else as it is named.
std::string beside(const std::string& where, const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path found = fs::path(where.substr(0, where.rfind(':'))).parent_path() / name;
  return fs::exists(found, error) ? found.string() : name;
}

/// Takes the file of an order out of [plan], where `schedule` names one.
void take_order_file(TomlValue& document, Scenario& scenario) {
  TomlValue* plan = document.find("plan");
  const TomlValue* schedule = plan == nullptr ? nullptr : plan->find("schedule");
  const std::string* name = schedule == nullptr ? nullptr : schedule->text();
  if (name == nullptr || !is_order_file(*name)) return;
  const auto orders =
      std::make_shared<const workloads::ListedOrders>(read_orders(beside(schedule->where, *name)));
  scenario.plan.schedule = workloads::Schedule::listed;
  scenario.plan.orders.list = orders;
  scenario.changed.emplace_back("plan.schedule");
  plan->erase("schedule");
}

/// A sequence of "4k" tokens has 4,096 and one of "1M" 1,048,576, as models' makers count.
void spell_out_sequence(TomlValue& document) {
  TomlValue* model = document.find("model");
  TomlValue* sequence = model == nullptr ? nullptr : model->find("sequence");
  const std::string* text = sequence == nullptr ? nullptr : sequence->text();
  if (text == nullptr || text->empty()) return;
  const std::int64_t unit = text->back() == 'k' || text->back() == 'K' ? 1 << 10
                            : text->back() == 'M'                      ? 1 << 20
                                                                       : 0;
  const auto count = number_in<std::int64_t>(std::string_view(*text).substr(0, text->size() - 1));
  if (unit > 0 && count && *count > 0 && *count < 1 << 24) sequence->data = *count * unit;
}

/// Chunks of a stage that follow from the schedule.
std::int64_t chunks_of(const workloads::ParallelPlan& plan) {
  if (plan.schedule == workloads::Schedule::listed) return plan.orders.list->chunks;
  return plan.placement() == workloads::Placement::looped ? plan.virtual_stages : 2;
}

/// A layout says the layers of each part, and with them how many chunks a stage has.
void read_stages(TableReader& table, const std::string& text, Scenario& scenario) {
  const StageLayout layout = parse_stage_layout(text, table.where("stages"));
  if (!scenario.stage_layers.empty())
    table.fail("stages", "both 'stages' and 'stage_layers' in [plan]",
               "one follows from the other");
  const std::int64_t parts = std::ssize(layout.layers), stages = scenario.plan.pipeline;
  if (parts % stages != 0)
    table.fail("stages", "'stages' in [plan] has " + std::to_string(parts) + " parts",
               "the plan has pipeline = " + std::to_string(stages));
  const bool looped = scenario.plan.placement() == workloads::Placement::looped;
  if (table.value("virtual_stages") == nullptr && looped)
    scenario.plan.virtual_stages = parts / stages;
  const std::int64_t mtp = std::accumulate(layout.mtp.begin(), layout.mtp.end(), std::int64_t{0});
  if (mtp != scenario.model.mtp_layers)
    table.fail("stages", "'stages' in [plan] has " + std::to_string(mtp) + " modules m",
               scenario.model.name + " has " + std::to_string(scenario.model.mtp_layers));
  if (layout.mtp.back() != mtp)
    table.fail("stages", "modules m apart from the loss are not modelled",
               "put m and L on one part: ...mL");
  scenario.stage_layers = layout.layers;
}

void read_plan(TableReader& table, Scenario& scenario) {
  know_data_of_frameworks(table);
  read_members(table, false, [&](auto&& visit) { visit_plan(scenario, visit); });
  scenario.plan_origin = table.where();
  if (table.value("virtual_stages") == nullptr)
    scenario.plan.virtual_stages = chunks_of(scenario.plan);
  if (const auto layout = table.text("stages")) read_stages(table, *layout, scenario);
  for (const char* key : {"schedule", "pipeline", "tensor", "context", "shard_degree",
                          "virtual_stages", "stage_layers", "stages", "expert", "expert_tensor"})
    if (table.value(key) != nullptr) scenario.plan_origin = table.where(key);
  table.finish();
}

/// Tokens of each expert, a line each.
std::vector<double> counts_of_file(const std::string& path) {
  const CsvFile file = read_csv(path);
  const std::string known[] = {"tokens"};
  const CsvColumns columns = columns_of(file, known);
  std::vector<double> out;
  for (const CsvRow& row : file.rows) {
    const CsvLine line(file, columns, row);
    const std::string& cell = line.stated("tokens");
    char* end = nullptr;
    out.push_back(std::strtod(cell.c_str(), &end));
    if (*end != 0 || !(out.back() >= 0.0)) line.fail("'" + cell + "' is no number of tokens");
  }
  return out;
}

void read_routing(TableReader& table, Scenario& scenario) {
  workloads::Routing& routing = scenario.plan.routing;
  read_members(table, false, [&](auto&& visit) { visit_routing(routing, visit); });
  const TomlValue* counts = table.value("counts");
  if (counts != nullptr && counts->text() != nullptr) {
    namespace fs = std::filesystem;
    const std::string where = table.where("counts");
    const fs::path beside = fs::path(where.substr(0, where.rfind(':'))).parent_path();
    const fs::path path = beside / *counts->text();
    std::error_code error;
    routing.counts =
        counts_of_file(fs::exists(path, error) ? path.string() : std::string(*counts->text()));
    table.note_change("counts");
  }
  table.finish();
}

void read_batch(TableReader& table, Scenario& scenario) {
  scenario.batch_origin = table.where();
  BatchKeys batch;
  read_members(table, false, [&](auto&& visit) { visit_batch(batch, visit); });
  const auto& [global, local, micro] = batch;
  if (global && local)
    table.fail("local", "both 'local' and 'global' in [batch]", "global = local x GPUs: give one");
  if (!global && !local) table.missing("local", "or 'global': --local-batch, --global-batch");
  if (local) {
    const double sequences = *local * static_cast<double>(scenario.gpus);
    scenario.global_batch = std::llround(sequences);
    if (sequences > 1e12) table.fail("local", "'local' in [batch] is too large");
    if (scenario.global_batch < 1 ||
        std::abs(sequences - static_cast<double>(scenario.global_batch)) > 1e-9 * sequences)
      table.fail("local", "'local' in [batch] x " + std::to_string(scenario.gpus) +
                              " GPUs is no whole number of sequences");
    scenario.batch_origin = table.where("local");
  } else {
    scenario.global_batch = *global;
    scenario.batch_origin = table.where("global");
  }
  scenario.micro = micro;
  if (micro.micro_batch && micro.micro_batches)
    table.fail("micro_batches", "both 'micro_batch' and 'micro_batches' in [batch]",
               "one follows from the other: give at most one");
  table.finish();
}

void read_precision(TableReader& table, Scenario& scenario) {
  using workloads::Dtype;
  workloads::Precision& precision = scenario.precision;
  read_members(table, false, [&](auto&& visit) { visit_precision(precision, visit); });
  scenario.precision_origin =
      table.value("recipe") != nullptr ? table.where("recipe") : table.where();
  suit_gpu(precision, scenario.node.gpu, scenario.precision_origin);
  if (table.value("loss_scaling") == nullptr)
    precision.loss_scaling = precision.compute == Dtype::fp16;
  if (precision.gradient_reduce == Dtype::tf32 ||
      workloads::bits_per_element(precision.gradient_reduce) < 16)
    table.fail("gradient_reduce",
               "gradients are not reduced in " + word_for(dtype_names, precision.gradient_reduce),
               "use fp32, bf16 or fp16");
  table.finish();
}

void read_calibration_table(TableReader& table, Scenario& scenario) {
  const std::string where = table.where("tables");
  read_members(table, false, [&](auto&& visit) { visit_calibration(scenario, visit); });
  for (std::string& name : scenario.tables)
    if (name != "published" && name != "host") name = beside(where, name);
  for (std::string& name : scenario.runs) name = beside(where, name);
  if (scenario.tables.empty())
    table.fail("tables", "'tables' in [calibration] is empty", "e.g. [\"published\"]");
  table.finish();
}

void read_noise(TableReader& table, Scenario& scenario) {
  read_members(table, false, [&](auto&& visit) { visit_noise(scenario.noise, visit); });
  const Noise& noise = scenario.noise;
  for (const auto& [key, sigma] : {std::pair{"kernel_sigma", noise.kernel_sigma},
                                   {"gpu_sigma", noise.gpu_sigma},
                                   {"pace_sigma", noise.pace_sigma}})
    if (sigma > 1.0)
      table.fail(key, "'" + std::string(key) + "' in [noise] is more than 1",
                 "it is a share of the duration: 0.02 is two percent");
  if (noise.steps > 100'000) table.fail("steps", "'steps' in [noise] is too large");
  read_stragglers(table, scenario);
  table.finish();
}

void read_run(TableReader& table, Scenario& scenario) {
  read_members(table, false, [&](auto&& visit) { visit_run(scenario.run, visit); });
  if (scenario.run.confidence >= 1.0)
    table.fail("confidence", "'confidence' in [run] is a share of cases", "0.8: four of five");
  const auto jitter = table.text("jitter");
  if (jitter && *jitter != "none")
    table.fail("jitter", "'jitter' in [run] cannot be '" + *jitter + "'",
               "[noise] says how kernels vary; \"none\" is the default");
  if (jitter && scenario.noise.on())
    table.fail("jitter", "'jitter' in [run] is \"none\" beside [noise]",
               "--without jitter runs a scenario without its noise");
  table.finish();
}

void read_collective(TableReader& table, Scenario& scenario) {
  CollectiveQuery query;
  read_members(table, true, [&](auto&& visit) { visit_collective(query, visit); });
  using enum workloads::Dtype;
  if (query.dtype == tf32 || query.dtype == fp8_block || query.dtype == mxfp8 ||
      query.dtype == nvfp4)
    table.fail("dtype", "nothing is sent as " + word_for(dtype_names, query.dtype),
               "use fp32, bf16, fp16 or fp8");
  scenario.collective = query;
  table.finish();
}

/// Reads table `key` of the document, or an empty one where every key has a default.
template <class Read>
void read_part(TableReader& document, const char* key, Scenario& scenario, Read read) {
  const TomlValue empty = toml_table(document.where());
  const TomlValue* value = document.table(key);
  TableReader table(value != nullptr ? *value : empty, key);
  read(table);
  scenario.changed.insert(scenario.changed.end(), table.changes().begin(), table.changes().end());
}

void read_model(TableReader& table, const Catalogue& catalogue, Scenario& scenario) {
  read_members(table, false, [&](auto&& visit) { visit_model_use(scenario, visit); });
  if (scenario.batch.sequence > 100'000'000)
    table.fail("sequence", "'sequence' in [model] is too large");
  scenario.model = catalogue.model(table);
  if (const auto name = table.text("name"))
    scenario.model_notes = catalogue.model_notes(*name, table.where("name"));
  table.finish();
}

/// Heads of latent attention follow from its ranks: to write down what follows changes nothing.
void forget_what_follows(const TomlValue* model, Scenario& scenario) {
  if (model == nullptr || !workloads::latent(scenario.model)) return;
  for (const auto& [key, follows] : {std::pair("kv_heads", scenario.model.heads),
                                     std::pair("head_dim", scenario.model.head_dim)}) {
    const TomlValue* written = model->find(key);
    const auto* count = written == nullptr ? nullptr : std::get_if<std::int64_t>(&written->data);
    if (count != nullptr && *count == follows)
      std::erase(scenario.changed, "model." + std::string(key));
  }
}

/// `source`: what `document` reads.
void read_step(TomlValue& source, TableReader& document, const Catalogue& catalogue,
               Scenario& scenario) {
  read_part(document, "model", scenario,
            [&](auto& table) { read_model(table, catalogue, scenario); });
  suit_experts(source, scenario.model);
  scenario.software_by_default = framework_by_default(source);
  forget_what_follows(document.table("model"), scenario);
  read_part(document, "plan", scenario, [&](auto& table) { read_plan(table, scenario); });
  read_part(document, "routing", scenario, [&](auto& table) { read_routing(table, scenario); });
  read_part(document, "batch", scenario, [&](auto& table) { read_batch(table, scenario); });
  read_part(document, "precision", scenario, [&](auto& table) { read_precision(table, scenario); });
  read_part(document, "software", scenario, [&](auto& table) {
    scenario.software =
        software_for(table, document.table("software"), scenario.node.gpu, catalogue);
    table.finish();
  });
  read_part(document, "run_goal", scenario, [&](auto& table) { read_run_goal(table, scenario); });
  read_part(document, "cost", scenario,
            [&](auto& table) { read_cost(table, catalogue, scenario); });
  read_part(document, "site", scenario,
            [&](auto& table) { read_site(table, catalogue, scenario); });
  read_part(document, "power", scenario, [&](auto& table) { read_power(table, scenario); });
}

}  // namespace

namespace {

/// Takes the keys that say "best" out of the document, for the others to be read.
std::vector<std::string> take_open_keys(TomlValue& document) {
  std::vector<std::string> open;
  for (const char* name : {"plan", "batch", "precision", "software"}) {
    TomlValue* table = document.find(name);
    if (table == nullptr || table->table() == nullptr) continue;
    for (const TomlEntry& entry : *table->table()) {
      const std::string path = std::string(name) + "." + entry.key;
      const std::string* word = entry.value.text();
      if (word == nullptr || !may_be_best(path)) continue;
      if (*word == "best")
        open.push_back(path);
      else if (path == "plan.tensor" || path == "plan.pipeline" || path == "plan.context")
        throw InputError(entry.value.where,
                         "'" + entry.key + "' in [" + name + "] must be a degree or \"best\"");
    }
    for (const std::string& path : open)
      if (path.starts_with(name)) table->erase(path.substr(path.find('.') + 1));
  }
  return open;
}

}  // namespace

Scenario read_scenario(const TomlValue& written, const Catalogue& catalogue) {
  if (written.find("what_if") != nullptr)
    return read_scenario(with_what_ifs(written, catalogue), catalogue);
  TomlValue source = with_framework(written);
  const std::vector<std::string> open = take_open_keys(source);
  TableReader document(source, "");
  Scenario scenario;
  scenario.origin = source.where;
  scenario.title = document.text("title").value_or("");
  scenario.tables = {"published"};
  take_order_file(source, scenario);
  spell_out_sequence(source);
  // All top-level names are asked for first: a misspelt [modle] is an unknown key, not a missing
  // one.
  for (const char* key : {"model", "cluster", "nccl", "plan", "routing", "batch", "precision",
                          "software", "calibration", "noise", "failures", "run", "collective",
                          "run_goal", "cost", "site", "power"})
    document.table(key);
  document.finish();
  read_part(document, "cluster", scenario,
            [&](auto& table) { read_cluster(table, catalogue, scenario); });
  read_part(document, "calibration", scenario,
            [&](auto& table) { read_calibration_table(table, scenario); });
  read_part(document, "noise", scenario, [&](auto& table) { read_noise(table, scenario); });
  if (document.table("failures") != nullptr)
    read_part(document, "failures", scenario,
              [&](auto& table) { scenario.failures = read_failures(table, catalogue); });
  read_part(document, "run", scenario, [&](auto& table) { read_run(table, scenario); });
  if (const TomlValue* collective = document.table("collective")) {
    TableReader table(*collective, "collective");
    read_collective(table, scenario);
    for (const char* key : {"model", "plan", "routing", "batch", "precision", "software", "noise",
                            "failures", "run_goal", "cost", "site", "power"})
      if (document.table(key) != nullptr)
        document.fail(key, "[" + std::string(key) + "] beside [collective]",
                      "a scenario asks for a training step or for one collective");
  } else {
    read_step(source, document, catalogue, scenario);
  }
  if (scenario.nccl.empty()) {
    scenario.nccl = default_nccl(scenario.software, scenario.node.gpu);
    catalogue.nccl(scenario.nccl, scenario.origin);  // is known
  }
  read_nccl(document.table("nccl"), catalogue, scenario);
  if (scenario.collective) return scenario;
  scenario.open = open;
  if (!open.empty()) return scenario;
  const auto [tensor, pipeline] = std::pair(scenario.plan.tensor, scenario.plan.pipeline);
  return with_degrees(std::move(scenario), tensor, pipeline);
}

}  // namespace stepcast::sim
