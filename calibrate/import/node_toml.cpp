// From an imported topology to a file of the catalogue.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "calibrate/import/node_topology.hpp"
#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/toml_value.hpp"
#include "sim/scenario/members.hpp"

namespace stepcast::calibrate {
namespace {

using topology::NodeKind;
using topology::NodeSpec;

std::string in_quotes(const std::string& text) {
  return sim::write_toml_value(sim::toml_text(text, {}));
}

/// Collects "key = value" lines of a node's members, in the order of the catalogue.
class KeyWriter : public sim::MemberVisitor<KeyWriter> {
 public:
  std::vector<std::pair<std::string, std::string>> lines;

  template <class E, class Choices>
  void member(const sim::Key& key, sim::Bound, const E& value, const Choices& choices) {
    put(key, in_quotes(sim::word_for(choices, value)));
  }
  template <class Q>
  void member(const sim::Key& key, sim::Bound, const Q& value) {
    put(key, in_quotes(to_exact_text(value)));
  }
  void member(const sim::Key& key, sim::Bound bound, const std::int64_t& value) {
    if (bound != sim::Bound::positive || value != 0) put(key, std::to_string(value));
  }
  void member(const sim::Key& key, sim::Bound, const bool& value) {
    put(key, value ? "true" : "false");
  }
  void member(const sim::Key& key, sim::Bound, const std::string& value) {
    if (!value.empty()) put(key, in_quotes(value));
  }
  void member(const sim::Key& key, sim::Bound, const std::vector<std::vector<std::int64_t>>& rows) {
    if (rows.empty()) return;
    std::string text = "[\n";
    for (const auto& row : rows) text += fmt::format("  [{}],\n", fmt::join(row, ", "));
    put(key, text + "]");
  }

 private:
  void put(const sim::Key& key, std::string value) {
    lines.emplace_back(key.name, std::move(value));
  }
};

/// Takes a node of the catalogue and changes what the file shows.
class NodeMaker {
 public:
  NodeMaker(const NodeTopology& file, const NodeImport& import, const sim::Catalogue& catalogue,
            Ignored& ignored)
      : file_(file), import_(import), ignored_(ignored) {
    const auto base = catalogue.node_of_gpu(wanted_gpu(catalogue.gpus()),
                                            import.gpu.empty() ? file.path : "--gpu");
    base_name_ = base.node;
    node_ = catalogue.node(base.value("catalogue"));
    if (base.put_in) ignored.note(base.note(), 1);
    for (const sim::SourceNote& note : catalogue.sources("nodes", base_name_))
      base_sources_[note.key] = note.text;
    check_gpu(catalogue.gpus());
  }

  std::string make() {
    node_.name = import_.name;
    set(node_.gpus, file_.gpus, "gpus");
    nvlinks();
    nics();
    if (file_.pcie_switches) set(node_.pcie_switches, *file_.pcie_switches, "pcie_switches");
    if (file_.pcie) set(node_.pcie, *file_.pcie, "pcie");
    if (file_.sockets) set(node_.sockets, *file_.sockets, "sockets");
    if (file_.cpu) set(node_.cpu, *file_.cpu, "cpu");
    if (file_.gpu_direct) set(node_.gpu_direct, *file_.gpu_direct, "gpu_direct");
    return text();
  }

 private:
  template <class T>
  void set(T& member, const T& value, const char* key) {
    member = value;
    from_file_.insert(key);
  }

  /// The chip that the file names, where the catalogue has it.
  const sim::GpuIdentity* chip_in_file(const sim::GpuIdentities& gpus) const {
    const sim::GpuIdentity* found = nullptr;
    for (const PciDevice& chip : file_.chips) {
      const sim::GpuIdentity* gpu = gpus.by_pci_id(chip.id);
      if (gpu != nullptr && found != nullptr && gpu != found)
        file_.fail(chip.line, "a " + gpu->gpu.name + " beside a " + found->gpu.name,
                   "only nodes of one kind are understood");
      if (gpu != nullptr) found = gpu;
    }
    return found;
  }

  template <class T>
  void assume(T& member, const T& value, const char* key, const std::string& why) {
    member = value;
    sources_[key] = "not in " + file_name() + "; assumed, as " + why;
  }

  std::string wanted_gpu(const sim::GpuIdentities& gpus) const {
    if (!import_.gpu.empty()) return import_.gpu;
    if (const auto* chip = chip_in_file(gpus)) return chip->gpu.name;
    file_.fail(1,
               file_.chips.empty() ? "does not say which GPU it holds"
                                   : "holds a GPU of PCI device " + file_.chips[0].id +
                                         ", which the catalogue lacks",
               "name it with --gpu, e.g. --gpu h100-sxm5-80gb");
  }

  void check_gpu(const sim::GpuIdentities& gpus) const {
    const std::string& gpu = node_.gpu.name;
    if (const auto* chip = chip_in_file(gpus); chip != nullptr && chip->gpu.name != gpu)
      throw InputError("--gpu", gpu + " is given, " + file_.path + " shows " + chip->gpu.name);
    const auto* wanted = gpus.find(gpu);
    if (!file_.compute_capability || wanted == nullptr || wanted->compute_capability == 0) return;
    if (wanted->compute_capability != *file_.compute_capability)
      throw InputError("--gpu", gpu + " is not of compute capability " +
                                    std::to_string(*file_.compute_capability) + ", which " +
                                    file_.path + " shows");
  }

  // --- NVLinks ---

  void nvlinks() {
    if (!file_.nvlinks_seen) {
      ignored_.note("shows no NVLinks: they are as in node " + base_name_, 1);
      return;
    }
    std::int64_t to_switches = file_.links_to_switches;
    if (to_switches == 0 && all_joined_by_switches()) to_switches = file_.nvlinks[0][1];
    if (to_switches > 0)
      switched(to_switches);
    else if (!file_.nvlinks.empty())
      direct();
    else
      set(node_.kind, NodeKind::pcie, "kind");
    if (node_.kind != NodeKind::nvswitch) node_.nvswitches = 0;
    if (node_.kind != NodeKind::hybrid_cube_mesh) node_.nvlinks.clear();
  }

  /// In the matrix a switch shows as all links of a GPU to every other GPU: more in a row than it
  /// has.
  bool all_joined_by_switches() const {
    const auto& table = file_.nvlinks;
    if (table.size() < 2) return false;
    const std::int64_t links = table[0][1];
    for (std::size_t i = 0; i < table.size(); ++i)
      for (std::size_t j = 0; j < table.size(); ++j)
        if (i != j && table[i][j] != links) return false;
    return links > 0 &&
           links * static_cast<std::int64_t>(table.size() - 1) > node_.gpu.nvlink_links;
  }

  void switched(std::int64_t links) {
    if (links > node_.gpu.nvlink_links) too_many(links);
    if (node_.kind != NodeKind::nvswitch && !file_.nvswitches)
      file_.fail(1, "shows NVSwitches, but not how many, and node " + base_name_ + " has none",
                 "import NCCL's topology of the bare machine");
    set(node_.kind, NodeKind::nvswitch, "kind");
    if (file_.nvswitches) set(node_.nvswitches, *file_.nvswitches, "nvswitches");
    gpu_links(links);
  }

  void direct() {
    std::int64_t most = 0;
    for (const auto& row : file_.nvlinks)
      most = std::max(most, std::accumulate(row.begin(), row.end(), std::int64_t{0}));
    if (most > node_.gpu.nvlink_links) too_many(most);
    set(node_.kind, NodeKind::hybrid_cube_mesh, "kind");
    set(node_.nvlinks, file_.nvlinks, "nvlinks");
    gpu_links(most);
  }

  [[noreturn]] void too_many(std::int64_t links) const {
    file_.fail(1,
               fmt::format("shows {} NVLinks at a GPU, {} has {}", links, node_.gpu.name,
                           node_.gpu.nvlink_links),
               "is --gpu the right one?");
  }

  /// A chip sold with some of its NVLinks off, or built in with fewer, is slower by that.
  void gpu_links(std::int64_t links) {
    if (links == node_.gpu.nvlink_links) return;
    node_.gpu.nvlink = node_.nvlink_per_link * static_cast<double>(links);
    node_.gpu.nvlink_links = links;
    fewer_links_ = true;
  }

  // --- NICs ---

  /// NICs beside GPUs are for training; others serve storage and management. Without any beside a
  /// GPU all of them may serve.
  std::vector<const ImportedNic*> training_nics() const {
    std::vector<const ImportedNic*> chosen;
    for (const ImportedNic& nic : file_.nics)
      if (nic.near_gpu) chosen.push_back(&nic);
    if (chosen.empty())
      for (const ImportedNic& nic : file_.nics) chosen.push_back(&nic);
    return chosen;
  }

  /// The speed that most of them have, the faster of equals.
  static std::optional<BytesPerSecond> usual_speed(const std::vector<const ImportedNic*>& nics) {
    std::map<double, int> votes;
    for (const ImportedNic* nic : nics)
      if (nic->speed) ++votes[nic->speed->value];
    if (votes.empty()) return std::nullopt;
    const auto best =
        std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) {
          return a.second < b.second || (a.second == b.second && a.first < b.first);
        });
    return BytesPerSecond(best->first);
  }

  void nics() {
    const auto chosen = training_nics();
    const auto speed = usual_speed(chosen);
    std::vector<const ImportedNic*> used;
    for (const ImportedNic& nic : file_.nics) {
      const bool serves = std::find(chosen.begin(), chosen.end(), &nic) != chosen.end();
      if (!serves)
        ignored_.add("a NIC that shares no PCIe switch with a GPU", nic.line);
      else if (speed && nic.speed && *nic.speed != *speed)
        ignored_.add("a NIC of another speed than most", nic.line);
      else
        used.push_back(&nic);
    }
    if (used.empty()) return ignored_.note("shows no NICs: they are as in node " + base_name_, 1);
    set(node_.nics, static_cast<std::int64_t>(used.size()), "nics");
    network(used);
    nic_speed(speed, used);
  }

  /// The one that most of the NICs speak, as far as they say.
  void network(const std::vector<const ImportedNic*>& nics) {
    std::map<topology::Network, int> votes;
    for (const ImportedNic* nic : nics)
      if (nic->network) ++votes[*nic->network];
    const auto most =
        std::max_element(votes.begin(), votes.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most != votes.end()) return set(node_.network, most->first, "network");
    const bool ethernet = nics.front()->ethernet;
    if (ethernet && node_.network == topology::Network::infiniband)
      assume(node_.network, topology::Network::roce, "network", "the NICs are Ethernet");
    ignored_.note(fmt::format("does not say what its {} NICs speak: {} is assumed, {}; efa on AWS",
                              nics.size(), sim::word_for(sim::network_names, node_.network),
                              ethernet ? "as they are Ethernet" : "as in node " + base_name_),
                  nics.front()->line);
  }

  void nic_speed(const std::optional<BytesPerSecond>& shown,
                 const std::vector<const ImportedNic*>& nics) {
    // A port of EFA: 100 Gbit/s from p3dn to p5, 200 in p5en (aws-samples/
    // awsome-distributed-training, 1.architectures/efa-cheatsheet.md, collected 2026).
    constexpr BytesPerSecond efa_port(100e9 / 8);
    if (import_.node_bandwidth) {
      node_.nic = *import_.node_bandwidth / static_cast<double>(nics.size());
      sources_["nic"] = "--node-bandwidth over the NICs, imported " + import_.date;
      return;
    }
    if (shown) return set(node_.nic, *shown, "nic");
    const bool efa = from_file_.contains("network") && node_.network == topology::Network::efa;
    if (efa) assume(node_.nic, efa_port, "nic", "a port of EFA");
    ignored_.note(fmt::format("shows no speed of its {} NICs: {} each is assumed, {}; else give "
                              "--node-bandwidth",
                              nics.size(), to_text(node_.nic),
                              efa ? "as a port of EFA" : "as in node " + base_name_),
                  nics.front()->line);
  }

  // --- the file ---

  std::string source_of(const std::string& key) const {
    if (const auto own = sources_.find(key); own != sources_.end()) return own->second;
    if (from_file_.contains(key))
      return fmt::format("imported from {} ({}), {}", file_name(), file_.format, import_.date);
    const auto base = base_sources_.find(key);
    return fmt::format("not in {}; as node {} of the catalogue{}", file_name(), base_name_,
                       base == base_sources_.end() ? "" : ": " + base->second);
  }

  std::string file_name() const { return file_.path.substr(file_.path.rfind('/') + 1); }

  std::string gpu_line() const {
    if (!fewer_links_) return "gpu = " + in_quotes(node_.gpu.name) + "\n";
    return fmt::format("gpu = {{ name = {}, nvlink = {}, nvlink_links = {} }}\n",
                       in_quotes(node_.gpu.name), in_quotes(to_exact_text(node_.gpu.nvlink)),
                       node_.gpu.nvlink_links);
  }

  std::string text() const {
    KeyWriter writer;
    sim::visit_node(node_, writer);
    std::string keys, sources;
    for (const auto& [key, value] : writer.lines) {
      if (absent(key)) continue;
      keys += key + " = " + value + "\n";
      if (key == "kind") keys += gpu_line();
      sources += key + " = " + in_quotes(source_of(key)) + "\n";
    }
    return fmt::format(
        "# {}: {} x {}, imported from {} ({}), {}. What the file does not say is as in node\n"
        "# {} of the catalogue; [sources] tells which.\n\nname = {}\n{}\n[sources]\n{}",
        node_.name, node_.gpus, node_.gpu.name, file_name(), file_.format, import_.date, base_name_,
        in_quotes(node_.name), keys, sources);
  }

  /// Members that mean nothing for this kind of node, or hold what a file may not say: zero.
  bool absent(const std::string& key) const {
    return (key == "nvswitches" && node_.nvswitches == 0) ||
           (key == "max_power" && node_.max_power.value == 0) ||
           (key == "nvlink_per_link" && node_.nvlink_per_link.value == 0);
  }

  const NodeTopology& file_;
  const NodeImport& import_;
  Ignored& ignored_;
  std::string base_name_;
  std::map<std::string, std::string> base_sources_;
  NodeSpec node_;
  std::set<std::string> from_file_;
  std::map<std::string, std::string> sources_;  // of what is neither in the file nor in the node
  bool fewer_links_ = false;
};

}  // namespace

void NodeTopology::fail(std::int64_t line, const std::string& what, const std::string& hint) const {
  throw InputError(path + ":" + std::to_string(line), what, hint);
}

std::string node_toml(const NodeTopology& topology, const NodeImport& import,
                      const sim::Catalogue& catalogue, Ignored& ignored) {
  return NodeMaker(topology, import, catalogue, ignored).make();
}

}  // namespace stepcast::calibrate
