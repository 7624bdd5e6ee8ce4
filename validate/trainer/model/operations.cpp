#include "validate/trainer/model/operations.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stepcast::validate {
namespace {

using workloads::Collective;
using workloads::Kernel;
using workloads::Lane;

std::string text_of(const Kernel& k) {
  return fmt::format(
      "kernel {} family {} m{} n{} k{} batch{} heads{} kv{} seq{} dim{}{}, {} flops, {} bytes",
      k.name, static_cast<int>(k.family), k.m, k.n, k.k, k.batch, k.heads, k.kv_heads, k.sequence,
      k.head_dim, k.accumulate ? " accumulate" : "", k.flops.value, k.bytes.value);
}

std::string text_of(const Collective& c) {
  return fmt::format("collective {} kind {} group {} dtype {}, {} bytes", c.name,
                     static_cast<int>(c.kind), static_cast<int>(c.group), static_cast<int>(c.dtype),
                     c.bytes.value);
}

std::vector<const Operation*> on_lane(const std::vector<Operation>& all, Lane lane) {
  std::vector<const Operation*> some;
  for (const Operation& o : all)
    if (o.lane == lane) some.push_back(&o);
  return some;
}

std::string text_at(const std::vector<const Operation*>& some, std::size_t i) {
  return i < some.size() ? to_text(*some[i]) : "nothing";
}

std::optional<std::string> lane_difference(const std::vector<const Operation*>& done,
                                           const std::vector<const Operation*>& planned, int lane) {
  for (std::size_t i = 0; i < std::max(done.size(), planned.size()); ++i) {
    if (i < done.size() && i < planned.size() && done[i]->what == planned[i]->what) continue;
    return fmt::format("lane {}, operation {}: done {}; planned {}; before it {}", lane, i,
                       text_at(done, i), text_at(planned, i),
                       i > 0 ? text_at(planned, i - 1) : "nothing");
  }
  return std::nullopt;
}

}  // namespace

std::string to_text(const Operation& operation) {
  return std::visit([](const auto& what) { return text_of(what); }, operation.what);
}

std::vector<Operation> operations_of(const workloads::StepProgram& program, std::int64_t stage) {
  std::vector<Operation> out;
  for (const engine::Instruction& i :
       program.roles.at(static_cast<std::size_t>(stage)).instructions) {
    const auto lane = static_cast<Lane>(i.lane);
    if (i.op == engine::Op::work) out.push_back({lane, program.kernels.at(i.arg), {}, {}});
    if (i.op == engine::Op::join) out.push_back({lane, program.collectives.at(i.arg), {}, {}});
  }
  return out;
}

std::optional<std::string> first_difference(const std::vector<Operation>& done,
                                            const std::vector<Operation>& planned) {
  for (int lane = 0; lane < workloads::num_lanes; ++lane)
    if (auto found = lane_difference(on_lane(done, static_cast<Lane>(lane)),
                                     on_lane(planned, static_cast<Lane>(lane)), lane))
      return found;
  return std::nullopt;
}

}  // namespace stepcast::validate
