#include "sim/run/step_transfers.hpp"

#include <algorithm>
#include <map>

namespace stepcast::sim {
namespace {

using engine::Traffic;
using workloads::GroupKind;

constexpr std::uint8_t data_class = 0, tensor_class = 1, pipeline_class = 2;

std::uint8_t class_of(Traffic traffic) {
  switch (traffic) {
    case Traffic::tensor:
    case Traffic::expert:
      return tensor_class;
    case Traffic::pipeline:
      return pipeline_class;
    case Traffic::data:
    case Traffic::offload:
      return data_class;
  }
  throw BrokenPromise("unknown traffic");
}

/// Times that a collective is joined, in the role that does so most often.
double most_joins(const std::vector<RoleCalls>& calls, std::size_t collective) {
  double most = 0.0;
  for (const RoleCalls& role : calls) most = std::max(most, role.joins[collective]);
  return most;
}

GroupForms forms_of(const Layout& layout) {
  GroupForms out;
  out.shapes = layout.shapes();
  for (int k = 0; k < workloads::num_group_kinds; ++k)
    out.of_kind.push_back(layout.patterns_of(static_cast<GroupKind>(k)));
  out.unit_of = [&layout](const Movement& movement) { return layout.unit_of(movement); };
  return out;
}

}  // namespace

std::vector<RoleCalls> calls_of(const workloads::StepProgram& program) {
  std::vector<RoleCalls> out;
  for (const engine::Program& role : program.roles) {
    RoleCalls& calls = out.emplace_back();
    calls.works.resize(program.kernels.size());
    calls.joins.resize(program.collectives.size());
    std::uint32_t at = 0;
    const auto count_to = [&](std::uint32_t end, double times) {
      for (; at < end; ++at) {
        const engine::Instruction& i = role.instructions[at];
        if (i.op == engine::Op::work) calls.works[i.arg] += times;
        if (i.op == engine::Op::join) calls.joins[i.arg] += times;
      }
    };
    for (const engine::Repeat& repeat : role.repeats) {
      count_to(repeat.first, 1.0);
      count_to(repeat.end, repeat.count);
    }
    count_to(static_cast<std::uint32_t>(role.instructions.size()), 1.0);
  }
  return out;
}

StepTransfers::StepTransfers(const workloads::StepProgram& program, const Layout& layout,
                             const NetworkModel& network)
    : StepTransfers(program, forms_of(layout), network) {
  layout_ = &layout;
}

StepTransfers::StepTransfers(const workloads::StepProgram& program, GroupForms forms,
                             const NetworkModel& network)
    : program_(program), forms_(std::move(forms)) {
  transfers_.resize(index(program_.collectives.size(), 0));
  times_.resize(transfers_.size());
  for (std::size_t c = 0; c < program_.collectives.size(); ++c) {
    const workloads::Collective& collective = program_.collectives[c];
    const Traffic traffic = workloads::axis_of(collective.group).traffic;
    for (const std::uint32_t p : patterns_of(collective.group)) {
      CollectiveTime time = network.time_of(collective, forms_.shapes[p]);
      if (collective.sms >= 0) time.ctas = collective.sms;
      // A group of one, or nothing to move: over at once.
      const double alone = std::max(seconds(time.duration), 1e-12);
      const auto bytes = static_cast<double>(collective.bytes.value);
      const bool copies = time.algorithm == Algorithm::copy_engine || collective.sms == 0;
      std::uint8_t interference = copies ? copy_engine_class(traffic) : class_of(traffic);
      if (collective.sms == 0 && interference == class_of(traffic))
        interference = engine::side_work_class;  // which has copies alone
      transfers_[index(c, p)] = {bytes, BytesPerSecond(bytes / alone), traffic, interference};
      times_[index(c, p)] = time;
      auto& [ctas, memory] = classes_[interference];
      ctas = std::max(ctas, time.ctas);
      memory = std::max(memory, time.memory_traffic);
    }
  }
}

/// Copy engines hold no SM, so their collectives need a class without kernels of NCCL: one that
/// this plan leaves unused. Where it uses all three, they are taken for kernels.
std::uint8_t StepTransfers::copy_engine_class(Traffic traffic) const {
  std::array<bool, engine::num_classes> taken{};
  for (const workloads::Collective& collective : program_.collectives)
    taken[class_of(workloads::axis_of(collective.group).traffic)] = true;
  for (const std::uint8_t c : {data_class, tensor_class, pipeline_class})
    if (!taken[c]) return c;
  return class_of(traffic);
}

void StepTransfers::wait_for_sms(Duration wait) {
  for (std::size_t c = 0; c < program_.collectives.size(); ++c) {
    if (!program_.collectives[c].beside) continue;
    for (const std::uint32_t p : patterns_of(program_.collectives[c].group)) {
      engine::Transfer& t = transfers_[index(c, p)];
      if (t.bytes > 0.0 && times_[index(c, p)].ctas > 0)
        t.cap = BytesPerSecond(t.bytes / (t.bytes / t.cap.value + seconds(wait)));
    }
  }
}

/// Transfers count the bytes of one flow, of which `unit` move per byte of the collective. Links
/// are shared fairly by flows: a ring over eight rails and a message on one of them each get half
/// of that NIC, although only an eighth of the ring's bytes cross it. A communicator has one set
/// of loads: that of the kind and algorithm by which it moves most bytes.
Movement StepTransfers::heaviest(GroupKind kind, std::uint32_t pattern,
                                 const std::vector<RoleCalls>& calls) {
  std::map<Delivery, double> bytes;  // moved in a step
  for (std::size_t c = 0; c < program_.collectives.size(); ++c) {
    const workloads::Collective& collective = program_.collectives[c];
    if (collective.group != kind) continue;
    const Delivery delivery = delivery_of(collective.kind, times_[index(c, pattern)]);
    const double unit = forms_.unit_of({kind, pattern, delivery});
    engine::Transfer& transfer = transfers_[index(c, pattern)];
    transfer.bytes *= unit;
    transfer.cap = transfer.cap * unit;
    bytes[delivery] += transfer.bytes * most_joins(calls, c);
  }
  const auto heaviest = std::ranges::max_element(bytes, {}, [](const auto& b) { return b.second; });
  return {kind, pattern, heaviest->first};
}

/// The fastest a communicator's transfers ever drain, by kind and pattern.
double StepTransfers::fastest(GroupKind kind, std::uint32_t pattern) const {
  double cap = 0.0;
  for (std::size_t c = 0; c < program_.collectives.size(); ++c)
    if (program_.collectives[c].group == kind)
      cap = std::max(cap, transfers_[index(c, pattern)].cap.value);
  return cap;
}

std::vector<StepTransfers::Flow> StepTransfers::count_by_flow(const std::vector<RoleCalls>& calls) {
  std::vector<Flow> flows;
  for (int k = 0; k < workloads::num_group_kinds; ++k) {
    const auto kind = static_cast<GroupKind>(k);
    for (const std::uint32_t pattern : patterns_of(kind)) {
      const Movement movement = heaviest(kind, pattern, calls);
      flows.push_back({movement, fastest(kind, pattern)});
    }
  }
  return flows;
}

std::vector<topology::LinkId> StepTransfers::put_on(engine::System& s,
                                                    const std::vector<RoleCalls>& calls) {
  std::vector<Movement> movements;
  std::map<std::pair<GroupKind, std::uint32_t>, double> fastest_of;
  for (const Flow& flow : count_by_flow(calls)) {
    movements.push_back(flow.movement);
    fastest_of[{flow.movement.group, flow.movement.pattern}] = flow.fastest;
  }
  s.transfers = transfers_;
  std::vector<double> fastest;
  for (std::size_t c = 0; c < s.communicators.size(); ++c)
    fastest.push_back(fastest_of.at({layout_->kind_of(c), s.communicators[c].pattern}));
  return layout_->picture_of(movements)->put_on(s, fastest);
}

const CollectiveTime& StepTransfers::time_of(std::size_t collective) const {
  const GroupKind group = program_.collectives[collective].group;
  return times_[index(collective, patterns_of(group).front())];
}

std::vector<ProtocolChoice> StepTransfers::choices(const std::vector<RoleCalls>& calls) const {
  std::vector<ProtocolChoice> out;
  for (std::size_t c = 0; c < program_.collectives.size(); ++c) {
    const workloads::Collective& collective = program_.collectives[c];
    const CollectiveTime& time = time_of(c);
    const double joins = most_joins(calls, c);
    if (!choice_index(collective.kind) || time.provenance != Provenance::model || joins == 0.0 ||
        time.duration == Duration{} || time.algorithm == Algorithm::copy_engine)
      continue;
    const NcclCall call{
        .kind = collective.kind, .bytes = collective.bytes, .dtype = collective.dtype};
    const GroupShape& shape = forms_.shapes[patterns_of(collective.group).front()];
    out.push_back({call, shape, time.protocol, joins, time.duration});
  }
  return out;
}

}  // namespace stepcast::sim
