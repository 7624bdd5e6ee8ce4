#include "calibrate/import/topology_xml.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <pugixml.hpp>
#include <set>
#include <utility>
#include <vector>

#include "calibrate/rows/numbers.hpp"
#include "engine/check.hpp"

namespace stepcast::calibrate {
namespace {

/// One NVLink attribute line; the two ends are checked against each other at the end.
struct NvLink {
  std::string target;
  std::int64_t count = 0, line = 0;
};

struct Gpu {
  std::string busid;
  std::int64_t order = 0, line = 0;
  bool seen_as_gpu = false;  // has a <gpu> child, which alone shows NVLinks
  std::vector<NvLink> to_gpus;
};

class XmlReader {
 public:
  XmlReader(const std::string& path, std::string_view text, Ignored& ignored)
      : text_(text), ignored_(ignored) {
    out_.path = path;
    out_.format = "NCCL topology";
    for (std::size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1))
      line_ends_.push_back(static_cast<std::ptrdiff_t>(at));
  }

  NodeTopology read() {
    pugi::xml_document document;
    const auto parsed = document.load_buffer(text_.data(), text_.size());
    if (!parsed)
      out_.fail(line_at(parsed.offset), std::string("is not XML: ") + parsed.description(),
                "was the file cut?");
    const pugi::xml_node system = document.child("system");
    if (!system)
      out_.fail(line_of(document.first_child()), "is no NCCL topology",
                "the root of one is <system version=\"1\">");
    if (attribute(system, "version") != "1")
      out_.fail(line_of(system), "is of version '" + attribute(system, "version") + "'",
                "1 is understood");
    read_cpus(system);
    if (gpus_.empty())
      out_.fail(line_of(system), "holds no GPU", "was the file written without GPUs?");
    link_gpus();
    out_.gpus = static_cast<std::int64_t>(gpus_.size());
    out_.pcie_switches = switches_with_gpus_;
    return std::move(out_);
  }

 private:
  // --- places and attributes ---

  std::int64_t line_at(std::ptrdiff_t offset) const {
    return 1 + (std::ranges::lower_bound(line_ends_, offset) - line_ends_.begin());
  }
  std::int64_t line_of(const pugi::xml_node& node) const { return line_at(node.offset_debug()); }

  static std::string attribute(const pugi::xml_node& node, const char* name) {
    return node.attribute(name).as_string();
  }

  std::int64_t count(const pugi::xml_node& node, const char* name, std::int64_t most) const {
    const std::string word = attribute(node, name);
    const auto value = number_in<std::int64_t>(word);
    if (!value || *value < 0 || *value > most)
      out_.fail(line_of(node), std::string(name) + "=\"" + word + "\" is no small number");
    return *value;
  }

  // --- the tree ---

  void read_cpus(const pugi::xml_node& system) {
    std::optional<std::string> host;
    std::int64_t domains = 0;
    for (const pugi::xml_node& cpu : system.children()) {
      if (std::string(cpu.name()) != "cpu") {
        ignored_.add("an element <" + std::string(cpu.name()) + ">", line_of(cpu));
        continue;
      }
      const std::string its_host = attribute(cpu, "host_hash");
      if (host && its_host != *host) {
        ignored_.add("a <cpu> of another host", line_of(cpu));
        continue;
      }
      host = its_host;
      ++domains;
      read_cpu(cpu);
    }
    if (domains == 1) out_.sockets = 1;
  }

  void read_cpu(const pugi::xml_node& cpu) {
    const std::string vendor = attribute(cpu, "vendor");
    if (vendor == "GenuineIntel")
      out_.cpu = "intel";
    else if (vendor == "AuthenticAMD")
      out_.cpu = "amd";
    else
      ignored_.add("a CPU of vendor '" + vendor + "'", line_of(cpu));
    for (const pugi::xml_node& child : cpu.children()) {
      const std::size_t gpus_before = gpus_.size(), nics_before = out_.nics.size();
      if (!read_device(child, child, 0)) continue;
      const bool bridge = attribute(child, "class").starts_with("0x0604");
      if (!bridge || gpus_.size() == gpus_before) continue;
      ++switches_with_gpus_;
      for (std::size_t i = nics_before; i < out_.nics.size(); ++i) out_.nics[i].near_gpu = true;
    }
  }

  /// False for what is no device. `pci` is the PCI device that the element belongs to.
  bool read_device(const pugi::xml_node& node, const pugi::xml_node& pci, int depth) {
    if (depth > 16) out_.fail(line_of(node), "nested too deeply for a PCIe tree");
    const std::string name = node.name();
    if (name == "pci") {
      const std::string kind = attribute(node, "class");
      if (kind.starts_with("0x0302") || kind.starts_with("0x0300")) read_gpu(node);
      for (const pugi::xml_node& child : node.children())
        if (std::string(child.name()) != "gpu") read_device(child, node, depth + 1);
      if (kind.starts_with("0x02") && !node.child("nic"))
        add_nic(node, attribute(node, "busid"), "");
    } else if (name == "nic") {
      for (const pugi::xml_node& net : node.children("net")) read_net(net, pci);
    } else if (name != "pcilink") {
      ignored_.add("an element <" + name + ">", line_of(node));
      return false;
    }
    return true;
  }

  // --- GPUs ---

  void read_gpu(const pugi::xml_node& pci) {
    Gpu gpu{.busid = attribute(pci, "busid"),
            .order = static_cast<std::int64_t>(gpus_.size()),
            .line = line_of(pci),
            .seen_as_gpu = false,
            .to_gpus = {}};
    for (const Gpu& other : gpus_)
      if (other.busid == gpu.busid) out_.fail(gpu.line, "a second GPU at " + gpu.busid);
    read_chip(pci);
    read_pcie_link(pci);
    if (const pugi::xml_node element = pci.child("gpu")) {
      gpu.seen_as_gpu = true;
      if (element.attribute("dev")) gpu.order = count(element, "dev", 1024);
      if (element.attribute("sm")) {
        const std::int64_t sm = count(element, "sm", 1000);
        if (out_.compute_capability && *out_.compute_capability != sm)
          out_.fail(line_of(element),
                    "GPUs of sm " + std::to_string(sm) + " and sm " +
                        std::to_string(*out_.compute_capability),
                    "only nodes of one kind are understood");
        out_.compute_capability = sm;
      }
      if (element.attribute("gdr"))
        out_.gpu_direct = out_.gpu_direct.value_or(true) && attribute(element, "gdr") == "1";
      read_nvlinks(element, gpu);
    }
    gpus_.push_back(std::move(gpu));
  }

  void read_chip(const pugi::xml_node& pci) {
    const std::string id = attribute(pci, "device");
    const bool known = std::any_of(out_.chips.begin(), out_.chips.end(),
                                   [&](const PciDevice& chip) { return chip.id == id; });
    if (!id.empty() && !known) out_.chips.push_back({id, line_of(pci)});
  }

  /// "32.0 GT/s PCIe" x 16. A virtual machine may hide the width (0).
  void read_pcie_link(const pugi::xml_node& pci) {
    const std::string speed = attribute(pci, "link_speed");
    const auto giga = number_in<double>(speed.substr(0, speed.find(' ')));
    const auto width = number_in<std::int64_t>(attribute(pci, "link_width"));
    if (!giga || !width || *width <= 0 || *width > 32 || *giga < 8 || *giga > 128) {
      ignored_.add(
          "a PCIe link of speed '" + speed + "' and width '" + attribute(pci, "link_width") + "'",
          line_of(pci));
      return;
    }
    // 15.75 GB/s is Gen3 x16: 8 GT/s x 16 x 128/130 / 8, as the catalogue rounds it.
    const BytesPerSecond rate(15.75e9 * *giga / 8 * static_cast<double>(*width) / 16);
    out_.pcie = out_.pcie ? std::min(*out_.pcie, rate) : rate;
  }

  void read_nvlinks(const pugi::xml_node& element, Gpu& gpu) {
    std::set<std::string> switches;
    std::int64_t to_switches = 0;
    bool hidden = false;
    for (const pugi::xml_node& link : element.children("nvlink")) {
      const std::string target = attribute(link, "target"), kind = attribute(link, "tclass");
      const std::int64_t links = count(link, "count", 64);
      if (kind.starts_with("0x0680")) {
        to_switches += links;
        // In a virtual machine all switches are one bridge at a made-up address.
        hidden = hidden || target.starts_with("ffff");
        switches.insert(target);
      } else if (kind.starts_with("0x03")) {
        gpu.to_gpus.push_back({target, links, line_of(link)});
      } else {
        ignored_.add("NVLinks to a device of class '" + kind + "'", line_of(link));
      }
    }
    const auto found = static_cast<std::int64_t>(switches.size());
    const bool first = gpus_.empty();
    if (!first && to_switches != out_.links_to_switches)
      out_.fail(gpu.line,
                "has " + std::to_string(to_switches) + " NVLinks to switches, the first " + "GPU " +
                    std::to_string(out_.links_to_switches),
                "is an NVLink down? see nvidia-smi nvlink -s");
    out_.links_to_switches = to_switches;
    if (!hidden && found > 0) out_.nvswitches = std::max(out_.nvswitches.value_or(0), found);
  }

  void link_gpus() {
    std::stable_sort(gpus_.begin(), gpus_.end(),
                     [](const Gpu& a, const Gpu& b) { return a.order < b.order; });
    std::map<std::string, std::size_t> index;
    for (std::size_t i = 0; i < gpus_.size(); ++i) index[gpus_[i].busid] = i;
    const auto seen =
        std::count_if(gpus_.begin(), gpus_.end(), [](const Gpu& gpu) { return gpu.seen_as_gpu; });
    out_.nvlinks_seen = seen > 0;
    if (seen != 0 && static_cast<std::size_t>(seen) != gpus_.size())
      ignored_.add("that some GPUs have no <gpu>: the dump was of a run without them",
                   gpus_.front().line);
    auto& table = out_.nvlinks;
    table.assign(gpus_.size(), std::vector<std::int64_t>(gpus_.size(), 0));
    bool any = false;
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      for (const NvLink& link : gpus_[i].to_gpus) {
        const auto target = index.find(link.target);
        if (target != index.end() && target->second == i) {
          ignored_.add("an NVLink of a GPU to itself, which NCCL gives no path either", link.line);
          continue;
        }
        if (target == index.end())
          out_.fail(link.line, "an NVLink to " + link.target + ", where no other GPU is",
                    "was the file cut, or the job not given all GPUs?");
        table[i][target->second] += link.count;
        any = true;
      }
    }
    for (std::size_t i = 0; i < gpus_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (table[i][j] != table[j][i])
          out_.fail(gpus_[i].line, "GPUs " + gpus_[j].busid + " and " + gpus_[i].busid +
                                       " disagree on their NVLinks");
    if (!any) table.clear();
  }

  // --- NICs ---

  void read_net(const pugi::xml_node& net, const pugi::xml_node& pci) {
    const std::string name = attribute(net, "name");
    ImportedNic& nic = add_nic(pci, name, name);
    nic.line = line_of(net);
    const std::int64_t megabits = count(net, "speed", 100'000'000);
    if (megabits > 0) nic.speed = BytesPerSecond(static_cast<double>(megabits) * 1e6 / 8);
  }

  /// `driver` is the name that a driver gave it; the element alone has none.
  ImportedNic& add_nic(const pugi::xml_node& pci, const std::string& name,
                       const std::string& driver) {
    const std::string kind = attribute(pci, "class");
    out_.nics.push_back({.name = name, .line = line_of(pci), .speed = {}, .network = {}});
    // 0xec20 and its like are AWS's Ethernet adapter ENA beside EFA (0xefa0; pci-ids.ucw.cz).
    const bool ena = attribute(pci, "device").starts_with("0xec");
    out_.nics.back().network = network_of_nic(driver, kind, ena ? "" : attribute(pci, "vendor"));
    out_.nics.back().ethernet = kind.starts_with("0x0200");
    return out_.nics.back();
  }

  std::string_view text_;
  std::vector<std::ptrdiff_t> line_ends_;
  Ignored& ignored_;
  NodeTopology out_;
  std::vector<Gpu> gpus_;
  std::int64_t switches_with_gpus_ = 0;
};

}  // namespace

NodeTopology parse_topology_xml(const std::string& path, std::string_view text, Ignored& ignored) {
  return XmlReader(path, text, ignored).read();
}

}  // namespace stepcast::calibrate
