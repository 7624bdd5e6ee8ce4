#include "sim/step_system.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "sim/group_links.hpp"
#include "sim/link_classes.hpp"
#include "sim/noise.hpp"

namespace stepcast::sim {
namespace {

using engine::Traffic;
using workloads::GroupKind;

constexpr std::uint8_t data_class = 0, tensor_class = 1, pipeline_class = 2;

Traffic traffic_of(GroupKind kind) {
  switch (kind) {
    case GroupKind::tensor:
    case GroupKind::context:
    case GroupKind::context_ring:
      return Traffic::tensor;  // inside a layer
    case GroupKind::pipeline_forward:
    case GroupKind::pipeline_backward:
      return Traffic::pipeline;
    case GroupKind::data:
    case GroupKind::shard:
    case GroupKind::replica:
    case GroupKind::world:
    case GroupKind::embedding:
      return Traffic::data;
  }
  throw BrokenPromise("unknown group kind");
}

std::uint8_t class_of(Traffic traffic) {
  switch (traffic) {
    case Traffic::tensor:
      return tensor_class;
    case Traffic::pipeline:
      return pipeline_class;
    case Traffic::data:
      return data_class;
  }
  throw BrokenPromise("unknown traffic");
}

/// Slots that a group kind fills, and which members it fills them for (-1: all).
struct SlotRule {
  workloads::Slot slot;
  GroupKind kind;
  int member;
};
constexpr std::array<SlotRule, workloads::num_slots> slot_rules{{
    {workloads::tensor_slot, GroupKind::tensor, -1},
    {workloads::data_slot, GroupKind::data, -1},
    {workloads::world_slot, GroupKind::world, -1},
    {workloads::send_next_slot, GroupKind::pipeline_forward, 0},
    {workloads::receive_previous_slot, GroupKind::pipeline_forward, 1},
    {workloads::send_previous_slot, GroupKind::pipeline_backward, 0},
    {workloads::receive_next_slot, GroupKind::pipeline_backward, 1},
    {workloads::embedding_slot, GroupKind::embedding, -1},
    {workloads::shard_slot, GroupKind::shard, -1},
    {workloads::replica_slot, GroupKind::replica, -1},
    {workloads::context_slot, GroupKind::context, -1},
    {workloads::context_ring_slot, GroupKind::context_ring, -1},
}};

class Binder {
 public:
  Binder(const Scenario& scenario, const workloads::StepProgram& program,
         const topology::Cluster& cluster, const KernelModel& kernels, const NetworkModel& network)
      : scenario_(scenario),
        program_(program),
        cluster_(cluster),
        kernels_(kernels),
        network_(network) {}

  StepSystem bind() {
    engine::System& s = out_.system;
    s.roles = program_.roles;
    for (std::int64_t r = 0; r < scenario_.plan.ranks(); ++r)
      s.role_of_rank.push_back(
          static_cast<std::uint32_t>(coordinates_of(scenario_.plan, r).pipeline));
    bind_host();
    bind_communicators();
    bind_transfers();
    bind_links();
    bind_works();
    account_loads();
    return std::move(out_);
  }

 private:
  void bind_host() {
    const workloads::Software& w = scenario_.software;
    auto& costs = out_.system.host_costs;
    costs.assign(workloads::num_host_costs, Duration{});
    costs[workloads::kernel_call] = w.launch_kernel;
    costs[workloads::collective_call] = w.launch_collective;
    costs[workloads::event_call] = w.event_call;
    costs[workloads::unit_call] = w.unit_overhead;
    costs[workloads::step_call] = w.step_overhead;
  }

  bool used(GroupKind kind) const {
    return std::ranges::any_of(program_.collectives,
                               [&](const auto& c) { return c.group == kind; });
  }

  void bind_communicators() {
    engine::System& s = out_.system;
    s.communicator_of.assign(workloads::num_slots,
                             std::vector<std::uint32_t>(s.num_ranks(), engine::no_communicator));
    for (int k = 0; k < workloads::num_group_kinds; ++k) {
      const auto kind = static_cast<GroupKind>(k);
      if (!used(kind)) continue;
      for (const auto& ranks : groups(scenario_.plan, kind)) {
        const auto id = static_cast<std::uint32_t>(s.communicators.size());
        for (const SlotRule& rule : slot_rules) {
          if (rule.kind != kind) continue;
          for (std::size_t m = 0; m < ranks.size(); ++m)
            if (rule.member < 0 || static_cast<std::size_t>(rule.member) == m)
              s.communicator_of[rule.slot][static_cast<std::size_t>(ranks[m])] = id;
        }
        engine::Communicator communicator;
        for (const std::int64_t r : ranks)
          communicator.members.push_back(static_cast<std::uint32_t>(r));
        communicator.pattern = pattern_of(shape_of(cluster_, kind, ranks));
        patterns_of_kind_[static_cast<std::size_t>(k)].insert(communicator.pattern);
        s.communicators.push_back(std::move(communicator));
        kind_of_communicator_.push_back(kind);
      }
    }
    s.num_patterns = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(shapes_.size()));
  }

  std::uint32_t pattern_of(const GroupShape& shape) {
    const auto [at, added] =
        pattern_index_.try_emplace(shape, static_cast<std::uint32_t>(shapes_.size()));
    if (added) shapes_.push_back(shape);
    return at->second;
  }

  /// Copy engines hold no SM, so their collectives need a class without kernels of NCCL: one that
  /// this plan leaves unused. Where it uses all three, they are taken for kernels.
  std::uint8_t copy_engine_class(Traffic traffic) const {
    std::array<bool, engine::num_classes> taken{};
    for (const workloads::Collective& collective : program_.collectives)
      taken[class_of(traffic_of(collective.group))] = true;
    for (const std::uint8_t c : {data_class, tensor_class, pipeline_class})
      if (!taken[c]) return c;
    return class_of(traffic);
  }

  void bind_transfers() {
    engine::System& s = out_.system;
    s.transfers.resize(program_.collectives.size() * s.num_patterns);
    times_.resize(s.transfers.size());
    for (std::size_t c = 0; c < program_.collectives.size(); ++c) {
      const workloads::Collective& collective = program_.collectives[c];
      const Traffic traffic = traffic_of(collective.group);
      for (const std::uint32_t p : patterns_of_kind_[static_cast<std::size_t>(collective.group)]) {
        const CollectiveTime time =
            network_.time_of(collective.kind, collective.bytes, collective.dtype, shapes_[p]);
        // A group of one, or nothing to move: over at once.
        const double alone = std::max(seconds(time.duration), 1e-12);
        const auto bytes = static_cast<double>(collective.bytes.value);
        const std::uint8_t interference = time.algorithm == Algorithm::copy_engine
                                              ? copy_engine_class(traffic)
                                              : class_of(traffic);
        s.transfers[c * s.num_patterns + p] = {bytes, BytesPerSecond(bytes / alone), traffic,
                                               interference};
        times_[c * s.num_patterns + p] = time;
        auto& [ctas, memory] = classes_[interference];
        ctas = std::max(ctas, time.ctas);
        memory = std::max(memory, time.memory_traffic);
      }
    }
  }

  /// Times that each collective is joined, in the role that does so most often.
  std::vector<double> count_joins() const {
    std::vector<double> most(program_.collectives.size(), 0.0);
    for (const engine::Program& role : program_.roles) {
      std::vector<double> joins(most.size(), 0.0);
      for (const engine::Instruction& i : role.instructions)
        if (i.op == engine::Op::join) joins[i.arg] += 1.0;
      for (std::size_t c = 0; c < most.size(); ++c) most[c] = std::max(most[c], joins[c]);
    }
    return most;
  }

  /// The loads that stand for all collectives of a group, and the bytes of one flow per byte.
  struct LoadSet {
    workloads::CollectiveKind kind{};
    Algorithm algorithm{};
    double unit = 1.0;
    double bytes = -1.0;  // that it moves in a step
  };

  /// Transfers count the bytes of one flow, of which `unit` move per byte of the collective. Links
  /// are shared fairly by flows: a ring over eight rails and a message on one of them each get half
  /// of that NIC, although only an eighth of the ring's bytes cross it. A communicator has one set
  /// of loads: that of the kind and algorithm by which it moves most bytes.
  LoadSet count_by_flow(GroupKind kind, std::uint32_t pattern,
                        const std::vector<std::int64_t>& ranks) {
    engine::System& s = out_.system;
    const std::vector<double> joins = count_joins();
    std::map<std::pair<workloads::CollectiveKind, Algorithm>, LoadSet> sets;
    for (std::size_t c = 0; c < program_.collectives.size(); ++c) {
      const workloads::Collective& collective = program_.collectives[c];
      if (collective.group != kind) continue;
      const Algorithm algorithm = times_[c * s.num_patterns + pattern].algorithm;
      const auto [set, first] = sets.try_emplace({collective.kind, algorithm});
      if (first)
        set->second = {
            collective.kind, algorithm,
            busiest_end(cluster_, loads_of(network_, kind, collective.kind, algorithm, ranks)),
            0.0};
      engine::Transfer& transfer = s.transfers[c * s.num_patterns + pattern];
      transfer.bytes *= set->second.unit;
      transfer.cap = transfer.cap * set->second.unit;
      set->second.bytes += transfer.bytes * joins[c];
    }
    LoadSet heaviest;
    for (const auto& [key, set] : sets)
      if (set.bytes > heaviest.bytes) heaviest = set;
    return heaviest;
  }

  /// The fastest a communicator's transfers ever drain, by kind and pattern.
  double fastest(GroupKind kind, std::uint32_t pattern) const {
    double cap = 0.0;
    for (std::size_t c = 0; c < program_.collectives.size(); ++c)
      if (program_.collectives[c].group == kind)
        cap =
            std::max(cap, out_.system.transfers[c * out_.system.num_patterns + pattern].cap.value);
    return cap;
  }

  void bind_links() {
    engine::System& s = out_.system;
    LinkClasses classes(cluster_);
    std::map<std::pair<GroupKind, std::uint32_t>, LoadSet> sets;
    std::vector<std::int64_t> ranks;
    for (std::size_t c = 0; c < s.communicators.size(); ++c) {
      const GroupKind kind = kind_of_communicator_[c];
      ranks.assign(s.communicators[c].members.begin(), s.communicators[c].members.end());
      const std::uint32_t pattern = s.communicators[c].pattern;
      const auto [set, first] = sets.try_emplace({kind, pattern});
      if (first) set->second = count_by_flow(kind, pattern, ranks);
      std::vector<LinkLoad> loads =
          loads_of(network_, kind, set->second.kind, set->second.algorithm, ranks);
      for (LinkLoad& load : loads) load.bytes_per_byte /= set->second.unit;
      classes.add(static_cast<std::uint32_t>(c), loads, fastest(kind, pattern));
    }
    classes.build(s);
  }

  static bool on_tensor_cores(const workloads::Kernel& kernel) {
    using enum workloads::KernelFamily;
    return kernel.family == gemm || kernel.family == attention_forward ||
           kernel.family == attention_backward;
  }

  void bind_works() {
    engine::System& s = out_.system;
    const topology::GpuSpec& gpu = scenario_.node.gpu;
    classes_[engine::side_work_class] = {0, side_traffic()};
    const Noise& noise = scenario_.noise;
    const double slower = noise.pace_sigma > 0.0 && !scenario_.run.without.jitter
                              ? pace(noise, scenario_.gpus, gpu.architecture)
                              : 1.0;
    for (const workloads::Kernel& kernel : program_.kernels) {
      KernelTime time = kernels_.time_of(kernel);
      if (slower != 1.0 && on_tensor_cores(kernel))
        time.duration = to_duration(seconds(time.duration) * slower);
      kernel_times_.push_back(time);
      s.works.push_back({time.duration, static_cast<std::uint32_t>(s.works.size())});
      for (int state = 0; state < engine::num_states; ++state) {
        std::int64_t ctas = 0;
        BytesPerSecond memory{};
        for (int c = 0, digits = state; c < engine::num_classes; ++c, digits /= 3) {
          if (digits % 3 >= 1) ctas += classes_[static_cast<std::size_t>(c)].ctas;
          if (digits % 3 == 2) memory += classes_[static_cast<std::size_t>(c)].memory;
        }
        const bool alone = state == 0 || scenario_.run.without.interference;
        s.stretch.push_back(alone ? 1.0 : stretch(time, gpu, ctas, memory));
      }
    }
  }

  /// HBM traffic of a copy beside the compute lane: copies run at their achieved bandwidth.
  BytesPerSecond side_traffic() const {
    BytesPerSecond most{};
    for (const workloads::Kernel& kernel : program_.kernels)
      if (kernel.family == workloads::KernelFamily::copy)
        most = std::max(
            most, scenario_.node.gpu.memory_bandwidth * kernels_.time_of(kernel).memory_fraction);
    return most;
  }

  void account_loads() {
    const engine::System& s = out_.system;
    for (const engine::Program& role : s.roles) {
      RoleLoad load;
      load.compute_seconds.assign(num_provenances, 0.0);
      load.network_seconds.assign(num_provenances, 0.0);
      for (const engine::Instruction& i : role.instructions) {
        if (i.op == engine::Op::work) {
          const KernelTime& time = kernel_times_[i.arg];
          const double t = seconds(time.duration);
          load.compute_seconds[static_cast<std::size_t>(time.provenance)] += t;
          if (time.tensor_fraction > 0.0) load.tensor_seconds += t;
          load.memory_seconds += t * time.memory_fraction;
        } else if (i.op == engine::Op::join) {
          const auto kind = static_cast<std::size_t>(program_.collectives[i.arg].group);
          const CollectiveTime& time =
              times_[i.arg * s.num_patterns + *patterns_of_kind_[kind].begin()];
          load.network_seconds[static_cast<std::size_t>(time.provenance)] += seconds(time.duration);
        }
      }
      out_.loads.push_back(std::move(load));
    }
  }

  struct ClassLoad {
    std::int64_t ctas = 0;
    BytesPerSecond memory{};
  };

  const Scenario& scenario_;
  const workloads::StepProgram& program_;
  const topology::Cluster& cluster_;
  const KernelModel& kernels_;
  const NetworkModel& network_;
  StepSystem out_;
  std::map<GroupShape, std::uint32_t> pattern_index_;
  std::vector<GroupShape> shapes_;
  std::array<std::set<std::uint32_t>, workloads::num_group_kinds> patterns_of_kind_;
  std::vector<GroupKind> kind_of_communicator_;
  std::vector<CollectiveTime> times_;
  std::vector<KernelTime> kernel_times_;
  std::array<ClassLoad, engine::num_classes> classes_{};
};

}  // namespace

StepSystem make_step_system(const Scenario& scenario, const workloads::StepProgram& program,
                            const topology::Cluster& cluster, const KernelModel& kernels,
                            const NetworkModel& network) {
  return Binder(scenario, program, cluster, kernels, network).bind();
}

}  // namespace stepcast::sim
