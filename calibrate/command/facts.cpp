#include "calibrate/command/facts.hpp"

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/toml_table.hpp"

namespace stepcast::calibrate {

ClusterFacts facts_of(const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  ClusterFacts facts;
  facts.gpus = catalogue.gpus();
  if (arguments.has("fabric")) check_fabric(facts.fabric = arguments.get("fabric"));
  if (arguments.has("node-bandwidth"))
    facts.node_bandwidth =
        parse<BytesPerSecond>(arguments.get("node-bandwidth"), "--node-bandwidth");
  if (const std::string name = arguments.get("gpu"); !name.empty()) {
    const auto gpu = gpu_named(name, facts.gpus);
    if (!gpu)
      throw InputError("--gpu", "unknown GPU '" + name + "'",
                       sim::suggestion(name, facts.gpus.known()));
    facts.gpu = *gpu;
  }
  if (const std::string name = arguments.get("collective"); !name.empty()) {
    const auto collective = collective_named(name);
    if (!collective)
      throw InputError("--collective", "unknown collective '" + name + "'", "e.g. all_reduce");
    facts.collective = *collective;
  }
  facts.nccl = arguments.get("nccl");
  if (arguments.has("ranks")) facts.ranks = arguments.count("ranks", 1);
  if (arguments.has("nodes")) facts.nodes = arguments.count("nodes", 1);
  return facts;
}

}  // namespace stepcast::calibrate
