#include "sim/network/nccl/tuning.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <string_view>

#include "engine/check.hpp"
#include "sim/files/collective_words.hpp"
#include "sim/files/toml_table.hpp"

namespace stepcast::sim {
namespace {

using workloads::CollectiveKind;

constexpr std::array<std::pair<std::string_view, BusRatio>, 4> ratio_names{{
    {"0.75", BusRatio::three_quarters},
    {"5/6", BusRatio::five_sixths},
    {"0.7 N/(2(N-1))", BusRatio::seven_tenths_nodes},
    {"ring", BusRatio::ring},
}};
constexpr std::array<std::pair<std::string_view, bool>, 2> inter_step_names{{
    {"N", true},
    {"N-1", false},
}};

constexpr std::array<std::pair<std::string_view, PluginLatency>, 3> plugin_latency_names{{
    {"ignored", PluginLatency::ignored},
    {"replaces", PluginLatency::replaces},
    {"adds", PluginLatency::adds},
}};

double number_of(const TomlValue& item, std::string_view key) {
  double number = -1.0;
  if (const auto* integer = std::get_if<std::int64_t>(&item.data))
    number = static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&item.data)) number = *real;
  if (!std::isfinite(number) || number < 0)
    throw InputError(item.where, std::string(key) + " holds numbers that are not negative");
  return number;
}

std::vector<double> numbers_of(TableReader& table, std::string_view key) {
  const TomlValue* value = table.required(key, table.value(key));
  if (value->array() == nullptr) table.fail(key, std::string(key) + " must be an array of numbers");
  std::vector<double> numbers;
  for (const TomlValue& item : *value->array()) numbers.push_back(number_of(item, key));
  return numbers;
}

std::array<double, 3> triple_of(TableReader& table, std::string_view key) {
  const std::vector<double> numbers = numbers_of(table, key);
  if (numbers.size() != 3) table.fail(key, std::string(key) + " needs three numbers");
  return {numbers[0], numbers[1], numbers[2]};
}

TableReader table_of(TableReader& parent, std::string_view key) {
  const std::string name =
      parent.name().empty() ? std::string(key) : parent.name() + "." + std::string(key);
  return TableReader(*parent.required(key, parent.table(key)), name);
}

void read_latencies(TableReader& root, NcclTuning& tuning) {
  TableReader table = table_of(root, "latency");
  for (std::size_t a = 0; a < num_algorithms; ++a) {
    TableReader row = table_of(table, algorithm_names[a].first);
    NcclLatency& latency = tuning.latency[a];
    latency.base = triple_of(row, "base");
    latency.nvlink = triple_of(row, "nvlink");
    latency.pci = triple_of(row, "pci");
    latency.net = triple_of(row, "net");
    row.finish();
  }
  table.finish();
}

void read_caps(TableReader& root, NcclTuning& tuning) {
  TableReader table = table_of(root, "cap");
  const std::array<std::pair<std::string_view, NcclCap*>, 5> caps{{
      {"ll_bus", &tuning.ll_bus},
      {"ring_ll128", &tuning.ring_ll128_cap},
      {"tree_ll128", &tuning.tree_ll128_cap},
      {"tree", &tuning.tree_cap},
      {"nvls_tree", &tuning.nvls_tree_cap},
  }};
  for (const auto& [key, cap] : caps) {
    TableReader row = table_of(table, key);
    cap->volta = triple_of(row, "volta");
    cap->ampere = triple_of(row, "ampere");
    cap->hopper = triple_of(row, "hopper");
    cap->blackwell = triple_of(row, "blackwell");
    row.finish();
  }
  table.finish();
}

bool flag_of(TableReader& table, std::string_view key) {
  return table.required(key, table.flag(key));
}

template <std::size_t n>
void read_row(TableReader& table, std::string_view key, std::string_view per,
              std::array<double, n>& row) {
  const std::vector<double> numbers = numbers_of(table, key);
  if (numbers.size() != n)
    table.fail(key, std::string(key) + " needs one number per " + std::string(per));
  std::copy(numbers.begin(), numbers.end(), row.begin());
}

/// What NCCL before 2.18 did otherwise.
void read_hop_rules(TableReader& rule, NcclTuning& tuning) {
  tuning.tree_ll128 = rule.required("tree_ll128", rule.number("tree_ll128", Range::not_negative));
  read_row(rule, "ll128_per_channel", "collective", tuning.ll128_per_channel);
  read_row(rule, "bus_cap", "GPU generation", tuning.bus_cap);
  tuning.ll_inside_between_nodes = rule.required(
      "ll_inside_between_nodes", rule.number("ll_inside_between_nodes", Range::not_negative));
  tuning.posts_to_network = flag_of(rule, "posts_to_network");
  tuning.plateau_by_channel = flag_of(rule, "plateau_by_channel");
  tuning.plain_trees_are_slower = flag_of(rule, "plain_trees_are_slower");
  tuning.plugin_latency =
      rule.required("plugin_latency", rule.choice("plugin_latency", plugin_latency_names));
}

/// How AllGather and ReduceScatter differ from AllReduce, and one rank per node from several.
void read_gather_rules(TableReader& rule, NcclTuning& tuning) {
  tuning.lone_ranks_take_tree_network = flag_of(rule, "lone_ranks_take_tree_network");
  tuning.gathers_are_converted = flag_of(rule, "gathers_are_converted");
  tuning.nvls_gather_network =
      rule.required("nvls_gather_network", rule.number("nvls_gather_network", Range::not_negative));
  tuning.nvls_gather_skips_own_share = flag_of(rule, "nvls_gather_skips_own_share");
  tuning.collnet_gather_network = rule.required(
      "collnet_gather_network", rule.number("collnet_gather_network", Range::not_negative));
}

void read_blackwell_rules(TableReader& rule, NcclTuning& tuning) {
  read_row(rule, "nvls_efficiency", "GPU generation", tuning.nvls_efficiency);
  tuning.nvls_tree_corrected_on_blackwell = flag_of(rule, "nvls_tree_corrected_on_blackwell");
  tuning.ll128_on_hopper = flag_of(rule, "ll128_on_hopper");
  tuning.ll128_on_blackwell = flag_of(rule, "ll128_on_blackwell");
  tuning.blackwell_most_ctas =
      rule.required("blackwell_most_ctas", rule.integer("blackwell_most_ctas"));
}

void read_rules(TableReader& root, NcclTuning& tuning) {
  TableReader rule = table_of(root, "rule");
  const auto share = [&](std::string_view key) {
    return rule.required(key, rule.number(key, Range::not_negative));
  };
  tuning.ring_ll = share("ring_ll");
  tuning.ring_ll_one_node = share("ring_ll_one_node");
  tuning.ring_ll128 = share("ring_ll128");
  tuning.ring_ll128_one_rank_per_node = share("ring_ll128_one_rank_per_node");
  tuning.all_reduce_counts_all_nodes =
      rule.required("all_reduce_inter_steps_per_node",
                    rule.choice("all_reduce_inter_steps_per_node", inter_step_names));
  tuning.nvls_ratio = rule.required("nvls_ratio", rule.choice("nvls_ratio", ratio_names));
  tuning.nvls_tree_ratio =
      rule.required("nvls_tree_ratio", rule.choice("nvls_tree_ratio", ratio_names));
  tuning.nvls_tree_halves_network =
      rule.required("nvls_tree_halves_network", rule.flag("nvls_tree_halves_network"));
  tuning.pat = share("pat");
  read_hop_rules(rule, tuning);
  read_gather_rules(rule, tuning);
  read_blackwell_rules(rule, tuning);
  tuning.fp8_sums = flag_of(rule, "fp8_sums");
  tuning.fp8_ring_factor = share("fp8_ring_factor");
  tuning.least_traffic_per_channel =
      rule.required("least_traffic_per_channel",
                    rule.quantity<Bytes>("least_traffic_per_channel", Range::not_negative));
  rule.finish();
}

void read_variables(TableReader& root, NcclTuning& tuning) {
  TableReader table = table_of(root, "variables");
  tuning.lists_by_function = flag_of(table, "lists_by_function");
  tuning.nothing_left_is_an_error = flag_of(table, "nothing_left_is_an_error");
  tuning.cta_policies = table.required("cta_policies", table.texts("cta_policies"));
  table.finish();
}

void read_corrections(TableReader& root, NcclTuning& tuning) {
  TableReader table = table_of(root, "tree_correction");
  for (std::size_t p = 0; p < num_protocols; ++p) {
    const std::string_view key = protocol_names[p].first;
    tuning.tree_correction[p] = numbers_of(table, key);
    for (const double share : tuning.tree_correction[p])
      if (share <= 0 || share > 1) table.fail(key, "shares of a bandwidth lie between 0 and 1");
  }
  table.finish();
}

void read_serves(TableReader& root, NcclTuning& tuning) {
  TableReader table = table_of(root, "serves");
  for (std::size_t k = 0; k < num_choices; ++k) {
    const std::string_view key = collective_names[k].first;
    for (const std::string& name : table.required(key, table.texts(key))) {
      const auto found = std::find_if(algorithm_names.begin(), algorithm_names.end(),
                                      [&](const auto& known) { return known.first == name; });
      if (found == algorithm_names.end() ||
          static_cast<std::size_t>(found->second) >= num_algorithms)
        table.fail(key, "unknown algorithm '" + name + "'");
      tuning.serves[k].push_back(found->second);
    }
  }
  table.finish();
}

/// "2.18.6" -> {2, 18, 6}; a part that is not there is the last of its kind.
using Version = std::array<std::int64_t, 3>;

std::optional<Version> version_of(std::string_view text) {
  Version version;
  version.fill(std::numeric_limits<std::int64_t>::max());
  std::size_t part = 0;
  while (true) {
    const std::size_t dot = std::min(text.find('.'), text.size());
    const std::string_view digits = text.substr(0, dot);
    if (part == version.size() || digits.empty() || digits.size() > 6) return std::nullopt;
    if (digits.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
    version[part++] = std::stoll(std::string(digits));
    if (dot == text.size()) break;
    text.remove_prefix(dot + 1);
  }
  if (part < 2) return std::nullopt;
  return version;
}

/// A key without a patch stands for the first of its line: "2.20" serves 2.20.0 and on.
Version first_of(const std::string& key) {
  Version version = *version_of(key);
  if (version[2] == std::numeric_limits<std::int64_t>::max()) version[2] = 0;
  return version;
}

}  // namespace

const NodesGigabytes& NcclCap::row(topology::NcclGeneration generation) const {
  switch (generation) {
    case topology::NcclGeneration::volta:
      return volta;
    case topology::NcclGeneration::ampere:
      return ampere;
    case topology::NcclGeneration::hopper:
      return hopper;
    case topology::NcclGeneration::blackwell:
      return blackwell;
    case topology::NcclGeneration::host:
      break;  // has no NCCL
  }
  throw BrokenPromise("a GPU generation without a row");
}

std::optional<std::size_t> choice_index(CollectiveKind kind) {
  const auto k = static_cast<std::size_t>(kind);  // those of choice are listed first
  return k < num_choices ? std::optional(k) : std::nullopt;
}

bool NcclTuning::serves_kind(CollectiveKind kind, Algorithm algorithm) const {
  const auto k = choice_index(kind);
  return k && std::find(serves[*k].begin(), serves[*k].end(), algorithm) != serves[*k].end();
}

NcclTuning read_nccl_tuning(const std::string& path) {
  const TomlValue document = read_toml_file(path);
  TableReader root(document, "");
  NcclTuning tuning;
  tuning.version = root.required("version", root.text("version"));
  tuning.source = root.required("source", root.text("source"));
  if (!version_of(tuning.version)) root.fail("version", "no NCCL version");
  read_latencies(root, tuning);
  read_caps(root, tuning);
  read_rules(root, tuning);
  read_variables(root, tuning);
  read_corrections(root, tuning);
  read_serves(root, tuning);
  root.finish();
  return tuning;
}

std::vector<std::string> nccl_versions(const std::string& directory) {
  std::vector<std::string> keys;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error))
    if (entry.path().extension() == ".toml" && version_of(entry.path().stem().string()))
      keys.push_back(entry.path().stem().string());
  if (error) throw InputError(directory, "cannot be read: " + error.message());
  std::sort(keys.begin(), keys.end(),
            [](const std::string& a, const std::string& b) { return first_of(a) < first_of(b); });
  return keys;
}

bool nccl_before(const std::string& version, const std::string& other) {
  const auto mine = version_of(version);
  return mine && version_of(other) && *mine < first_of(other);
}

NcclTuning nccl_tuning_of(const std::string& directory, const std::string& version,
                          const std::string& where) {
  const auto wanted = version_of(version);
  const std::vector<std::string> keys = nccl_versions(directory);
  if (keys.empty()) throw InputError(directory, "holds no NCCL versions");
  if (!wanted)
    throw InputError(where, "'" + version + "' is no NCCL version", "write it like \"2.20\"");
  std::string newest;
  for (const std::string& key : keys)
    if (first_of(key) <= *wanted) newest = key;
  if (newest.empty())
    throw InputError(where, "NCCL " + version + " is older than the oldest known",
                     "known from " + keys.front() + " on");
  const auto series = [](const Version& v) { return std::pair(v[0], v[1]); };
  if (series(*wanted) > series(first_of(keys.back())))
    throw InputError(where, "NCCL " + version + " is newer than the newest known",
                     "known up to " + keys.back());
  return read_nccl_tuning((std::filesystem::path(directory) / (newest + ".toml")).string());
}

}  // namespace stepcast::sim
