#include "sim/network/exchange/kernels.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "engine/check.hpp"
#include "sim/files/names.hpp"
#include "sim/files/suggest.hpp"
#include "sim/files/toml_table.hpp"

namespace stepcast::sim {
namespace {

using workloads::Dispatcher;
using workloads::TokenExchange;

ExchangeKernels read_one(const std::string& path) {
  const TomlValue document = read_toml_file(path);
  TableReader table(document, "");
  ExchangeKernels k;
  k.name = table.required("name", table.text("name"));
  k.dispatcher = table.required("dispatcher", table.choice("dispatcher", dispatcher_names));
  if (k.dispatcher != Dispatcher::node_aware && k.dispatcher != Dispatcher::nvlink_domain)
    table.fail("dispatcher", "NCCL's own exchange has no kernels of its own",
               "node_aware or nvlink_domain");
  k.usual = table.required("usual", table.flag("usual"));
  k.sms = table.required("sms", table.integer("sms"));
  k.nvlink = table.required("nvlink", table.number("nvlink"));
  k.nvlink_per_sm =
      table.required("nvlink_per_sm", table.quantity<BytesPerSecond>("nvlink_per_sm"));
  k.forwarded = table.required("forwarded", table.number("forwarded"));
  k.nic = table.required("nic", table.number("nic"));
  k.fixed = table.required("fixed", table.quantity<Duration>("fixed", Range::not_negative));
  table.required("sources", table.table("sources"));  // for the reader of the file
  table.finish();
  return k;
}

/// A GPU's part of the NICs of its node: its own, or a share where there are fewer.
BytesPerSecond nic_of_gpu(const topology::NodeSpec& node) {
  const double share = static_cast<double>(node.nics) / static_cast<double>(node.gpus);
  return std::min(node.nic, node.pcie) * std::min(1.0, share);
}

/// What a GPU puts on its NVLinks and on its NIC. Its own node and itself need neither.
struct Sent {
  double nvlink = 0.0, nic = 0.0;
};

Sent sent_by(const TokenExchange& t, const GroupShape& shape, double nodes, double ranks) {
  const double rows = static_cast<double>(t.tokens) * static_cast<double>(t.row_bytes);
  const auto in_node = static_cast<double>(shape.ranks_per_node);
  const auto n = static_cast<double>(shape.nodes);
  return {rows * ranks * (in_node - 1) / in_node, rows * nodes * (n - 1) / n};
}

}  // namespace

std::vector<ExchangeKernels> read_exchange_kernels(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(directory, error))
    if (file.path().extension() == ".toml") paths.push_back(file.path().string());
  if (error) throw InputError(directory, "cannot be read: " + error.message());
  std::ranges::sort(paths);
  std::vector<ExchangeKernels> out;
  for (const std::string& path : paths) out.push_back(read_one(path));
  return out;
}

std::vector<ExchangeKernels> chosen_exchange_kernels(const std::vector<ExchangeKernels>& all,
                                                     const std::string& named,
                                                     const std::string& where) {
  const auto wanted = std::ranges::find(all, named, &ExchangeKernels::name);
  if (!named.empty() && wanted == all.end()) {
    std::vector<std::string> known;
    for (const ExchangeKernels& k : all) known.push_back(k.name);
    throw InputError(where, "unknown exchange '" + named + "'", suggestion(named, known));
  }
  std::vector<ExchangeKernels> out;
  for (const ExchangeKernels& k : all) {
    const bool replaced = wanted != all.end() && wanted->dispatcher == k.dispatcher;
    if (replaced ? k.name == named : k.usual) out.push_back(k);
  }
  return out;
}

bool is_node_aware(const workloads::Collective& collective) {
  return collective.kind == workloads::CollectiveKind::all_to_all && collective.tokens.tokens > 0 &&
         (collective.tokens.dispatcher == Dispatcher::node_aware ||
          collective.tokens.dispatcher == Dispatcher::nvlink_domain);
}

TokenExchangeTimes::TokenExchangeTimes(topology::NodeSpec node,
                                       std::vector<ExchangeKernels> kernels)
    : node_(std::move(node)), kernels_(std::move(kernels)) {}

const ExchangeKernels& TokenExchangeTimes::kernels_of(Dispatcher dispatcher) const {
  const auto found = std::ranges::find(kernels_, dispatcher, &ExchangeKernels::dispatcher);
  expects(found != kernels_.end(), "kernels for every dispatcher that is one's own");
  return *found;
}

double TokenExchangeTimes::distinct(const TokenExchange& t, std::int64_t parts) const {
  const Question question{{t.experts, t.per_token, t.groups, t.group_limit}, parts};
  return *distinct_.get(question, [&] { return distinct_destinations(question.choice, parts); });
}

CollectiveTime TokenExchangeTimes::time_of(const workloads::Collective& collective,
                                           const GroupShape& shape) const {
  const TokenExchange& t = collective.tokens;
  CollectiveTime out;
  out.algorithm = Algorithm::node_aware;
  out.protocol = Protocol::simple;
  out.provenance = Provenance::model;
  if (shape.ranks < 2 || collective.bytes == Bytes(0)) return out;
  const ExchangeKernels& kernels = kernels_of(t.dispatcher);
  if (node_.kind == topology::NodeKind::pcie || node_.gpu.nvlink.value <= 0.0)
    throw InputError("cluster.node", kernels.name + " needs NVLink between the GPUs of a node",
                     "take dispatcher = \"all_to_all\"");
  const double nodes = distinct(t, shape.nodes), ranks = distinct(t, shape.ranks);
  const auto picks = static_cast<double>(t.per_token);
  out.copies = {nodes / picks, ranks / picks};
  out.ctas = out.channels = t.sms > 0 ? t.sms : kernels.sms;
  const Sent sent = sent_by(t, shape, nodes, ranks);
  const double of_sm = shape.nodes > 1 ? kernels.forwarded : 1.0;
  const double nvlink = std::min(node_.gpu.nvlink * kernels.nvlink,
                                 kernels.nvlink_per_sm * (of_sm * static_cast<double>(out.ctas)))
                            .value;
  double slowest = sent.nvlink > 0 ? sent.nvlink / nvlink : 0.0;
  if (shape.nodes > 1)
    slowest = std::max(slowest, sent.nic / (nic_of_gpu(node_) * kernels.nic).value);
  out.start = out.latency = kernels.fixed;
  out.transfer = to_duration(t.fullest * slowest);
  out.duration = out.latency + out.transfer;
  out.algbw = collective.bytes / out.duration;
  out.busbw = out.algbw * bus_factor(collective.kind, shape.ranks);
  // Each row is read to be sent and written on arrival.
  const double moved = 2.0 * (sent.nvlink + sent.nic);
  out.memory_traffic = BytesPerSecond(moved / seconds(out.duration));
  return out;
}

}  // namespace stepcast::sim
