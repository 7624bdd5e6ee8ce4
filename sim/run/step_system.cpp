#include "sim/run/step_system.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "sim/scenario/noise.hpp"

namespace stepcast::sim {
namespace {

using engine::Traffic;
using workloads::GroupKind;

constexpr std::uint8_t data_class = 0, tensor_class = 1, pipeline_class = 2;

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

class Binder {
 public:
  Binder(const Scenario& scenario, const workloads::StepProgram& program, const Layouts& layouts,
         const KernelModel& kernels, const NetworkModel& network)
      : scenario_(scenario),
        program_(program),
        layout_(layouts.of(layout_key(scenario.plan, program))),
        kernels_(kernels),
        network_(network) {}

  StepSystem bind() {
    out_.layout = layout_;
    out_.system = layout_->groups();
    out_.system.roles = program_.roles;
    bind_host();
    count_calls();
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
    costs[workloads::kernel_call] = w.host.launch_kernel;
    costs[workloads::collective_call] = w.host.launch_collective;
    costs[workloads::event_call] = w.host.event_call;
    costs[workloads::unit_call] = w.host.unit_overhead;
    costs[workloads::step_call] = w.host.step_overhead;
  }

  /// Times that each role runs each kernel and joins each collective.
  void count_calls() {
    for (const engine::Program& role : program_.roles) {
      RoleCalls& calls = calls_.emplace_back();
      calls.works.resize(program_.kernels.size());
      calls.joins.resize(program_.collectives.size());
      engine::each_call(role, [&](const engine::Instruction& i, std::int64_t times) {
        if (i.op == engine::Op::work) calls.works[i.arg] += static_cast<double>(times);
        if (i.op == engine::Op::join) calls.joins[i.arg] += static_cast<double>(times);
      });
    }
  }

  /// Copy engines hold no SM, so their collectives need a class without kernels of NCCL: one that
  /// this plan leaves unused. Where it uses all three, they are taken for kernels.
  std::uint8_t copy_engine_class(Traffic traffic) const {
    std::array<bool, engine::num_classes> taken{};
    for (const workloads::Collective& collective : program_.collectives)
      taken[class_of(workloads::axis_of(collective.group).traffic)] = true;
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
      const Traffic traffic = workloads::axis_of(collective.group).traffic;
      for (const std::uint32_t p : layout_->patterns_of(collective.group)) {
        const CollectiveTime time = network_.time_of(collective.kind, collective.bytes,
                                                     collective.dtype, layout_->shapes()[p]);
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

  /// Times that a collective is joined, in the role that does so most often.
  double most_joins(std::size_t collective) const {
    double most = 0.0;
    for (const RoleCalls& role : calls_) most = std::max(most, role.joins[collective]);
    return most;
  }

  /// Transfers count the bytes of one flow, of which `unit` move per byte of the collective. Links
  /// are shared fairly by flows: a ring over eight rails and a message on one of them each get half
  /// of that NIC, although only an eighth of the ring's bytes cross it. A communicator has one set
  /// of loads: that of the kind and algorithm by which it moves most bytes.
  Movement count_by_flow(GroupKind kind, std::uint32_t pattern) {
    engine::System& s = out_.system;
    std::map<std::pair<workloads::CollectiveKind, Algorithm>, double> bytes;  // moved in a step
    for (std::size_t c = 0; c < program_.collectives.size(); ++c) {
      const workloads::Collective& collective = program_.collectives[c];
      if (collective.group != kind) continue;
      const Algorithm algorithm = times_[c * s.num_patterns + pattern].algorithm;
      const double unit = layout_->unit_of({kind, pattern, collective.kind, algorithm});
      engine::Transfer& transfer = s.transfers[c * s.num_patterns + pattern];
      transfer.bytes *= unit;
      transfer.cap = transfer.cap * unit;
      bytes[{collective.kind, algorithm}] += transfer.bytes * most_joins(c);
    }
    const auto heaviest =
        std::ranges::max_element(bytes, {}, [](const auto& b) { return b.second; });
    return {kind, pattern, heaviest->first.first, heaviest->first.second};
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
    std::vector<Movement> movements;
    std::map<std::pair<GroupKind, std::uint32_t>, double> fastest_of;
    for (int k = 0; k < workloads::num_group_kinds; ++k) {
      const auto kind = static_cast<GroupKind>(k);
      for (const std::uint32_t pattern : layout_->patterns_of(kind)) {
        movements.push_back(count_by_flow(kind, pattern));
        fastest_of[{kind, pattern}] = fastest(kind, pattern);
      }
    }
    std::vector<double> fastest;
    for (std::size_t c = 0; c < s.communicators.size(); ++c)
      fastest.push_back(fastest_of.at({layout_->kind_of(c), s.communicators[c].pattern}));
    layout_->picture_of(movements)->put_on(s, fastest);
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
    for (const RoleCalls& calls : calls_) {
      RoleLoad load;
      load.compute_seconds.assign(num_provenances, 0.0);
      load.network_seconds.assign(num_provenances, 0.0);
      for (std::size_t w = 0; w < calls.works.size(); ++w) {
        const KernelTime& time = kernel_times_[w];
        const double t = calls.works[w] * seconds(time.duration);
        load.compute_seconds[static_cast<std::size_t>(time.provenance)] += t;
        if (time.tensor_fraction > 0.0) load.tensor_seconds += t;
        load.memory_seconds += t * time.memory_fraction;
      }
      for (std::size_t c = 0; c < calls.joins.size(); ++c) {
        const std::uint32_t first = layout_->patterns_of(program_.collectives[c].group).front();
        const CollectiveTime& time = times_[c * out_.system.num_patterns + first];
        load.network_seconds[static_cast<std::size_t>(time.provenance)] +=
            calls.joins[c] * seconds(time.duration);
      }
      out_.loads.push_back(std::move(load));
    }
  }

  struct RoleCalls {
    std::vector<double> works, joins;
  };
  struct ClassLoad {
    std::int64_t ctas = 0;
    BytesPerSecond memory{};
  };

  const Scenario& scenario_;
  const workloads::StepProgram& program_;
  const std::shared_ptr<const Layout> layout_;
  const KernelModel& kernels_;
  const NetworkModel& network_;
  StepSystem out_;
  std::vector<RoleCalls> calls_;  // by role
  std::vector<CollectiveTime> times_;
  std::vector<KernelTime> kernel_times_;
  std::array<ClassLoad, engine::num_classes> classes_{};
};

}  // namespace

StepSystem make_step_system(const Scenario& scenario, const workloads::StepProgram& program,
                            const Layouts& layouts, const KernelModel& kernels,
                            const NetworkModel& network) {
  return Binder(scenario, program, layouts, kernels, network).bind();
}

}  // namespace stepcast::sim
