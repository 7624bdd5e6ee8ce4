#include "calibrate/report/card.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "calibrate/report/overlap_check.hpp"
#include "calibrate/report/row_text.hpp"
#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/collective_words.hpp"
#include "sim/files/toml_value.hpp"
#include "sim/kernels/attention_times.hpp"
#include "sim/kernels/bandwidth_fractions.hpp"
#include "sim/kernels/gemm_times.hpp"
#include "sim/tables/gpu_names.hpp"

namespace stepcast::calibrate {
namespace {

using sim::CalibrationTable;
using sim::Family;
using workloads::KernelFamily;

// As bandwidth_fraction() says: of tensors of 64 MiB and more.
constexpr Bytes least_streamed(64 << 20);

struct KindFamily {
  std::string_view kind;
  KernelFamily forward, backward;
};
constexpr KindFamily kind_families[] = {
    {"rmsnorm", KernelFamily::norm, KernelFamily::norm_backward},
    {"layernorm", KernelFamily::norm, KernelFamily::norm_backward},
    {"rope", KernelFamily::rope, KernelFamily::rope},
    {"silu_mul", KernelFamily::activation, KernelFamily::activation},
    {"gelu", KernelFamily::activation, KernelFamily::activation},
    {"residual_add", KernelFamily::pointwise, KernelFamily::pointwise},
    {"cast", KernelFamily::copy, KernelFamily::copy},
    {"copy_in", KernelFamily::copy, KernelFamily::copy},
    {"copy_out", KernelFamily::copy, KernelFamily::copy},
    {"embedding", KernelFamily::embedding, KernelFamily::embedding},
    {"cross_entropy", KernelFamily::softmax, KernelFamily::softmax},
    {"grad_norm", KernelFamily::reduction, KernelFamily::reduction},
    {"adamw", KernelFamily::optimizer, KernelFamily::optimizer},
};

// Whose rows forecast others of the same; our own kernels' do not.
constexpr workloads::AttentionKernel attention_kernels[] = {
    workloads::AttentionKernel::flash2, workloads::AttentionKernel::flash3,
    workloads::AttentionKernel::flash4, workloads::AttentionKernel::cudnn,
    workloads::AttentionKernel::memory_efficient};

struct Known {
  double seconds = 0;
  bool measured = false;
  double spread = 0;  // of the samples that it is the median of
};

/// A peak of a datasheet is no par: nothing reaches it.
template <class Time>
std::optional<Known> par_of(const std::optional<Time>& time) {
  if (!time || time->provenance == sim::Provenance::datasheet) return {};
  return Known{seconds(time->duration), time->provenance == sim::Provenance::measured};
}

sim::AttentionShape shape_of(const sim::AttentionRow& row) {
  sim::AttentionShape shape{.batch = row.batch,
                            .heads = row.heads,
                            .sequence = row.sequence,
                            .head_dim = row.head_dim,
                            .causal = row.mask == "causal",
                            .backward = row.pass == "backward"};
  shape.value_dim = row.value_dim;
  shape.window = row.window;
  return shape;
}

// A rate is the inverse of a time for one unit of work.
double work_of(const sim::GemmRow& row) { return sim::GemmShape{row.m, row.n, row.k, 1}.flops(); }
double work_of(const sim::AttentionRow& row) { return shape_of(row).flops(); }
template <class Row>
double work_of(const Row&) {
  return 1.0;
}

/// What is known of one GPU of the catalogue from the tables that par is.
class Forecasts {
 public:
  Forecasts(const topology::GpuSpec& gpu, const CalibrationTable& tables, const Par& par,
            sim::Session& session)
      : gpu_(gpu),
        gemms_(tables.gemm, gpu),
        attentions_(tables.attention, gpu),
        copies_(sim::copy_fraction(tables.copies, gpu)),
        par_(par),
        session_(session) {}

  std::optional<Known> of(const sim::GemmRow& row) const {
    const auto dtype = sim::dtype_named(row.dtype);
    if (!dtype || row.groups > 0 || row.cache == "hot" || row.is_best()) return {};
    return par_of(gemms_.time_of({row.m, row.n, row.k, 1}, *dtype, {row.layout, row.accumulate}));
  }

  std::optional<Known> of(const sim::AttentionRow& row) const {
    const auto dtype = sim::dtype_named(row.dtype);
    if (!dtype || row.pass == "forward_backward" || row.cache == "hot") return {};
    for (const workloads::AttentionKernel kernel : attention_kernels) {
      if (row.implementation != sim::implementation_name(kernel)) continue;
      sim::AttentionShape shape = shape_of(row);
      shape.dtype = *dtype;
      if (!(shape.flops() > 0)) return {};
      return par_of(attentions_.time_of(shape, kernel));
    }
    return {};
  }

  std::optional<Known> of(const sim::ElementwiseRow& row) const {
    if (gpu_.architecture.host || row.cache == "hot" || row.bytes < least_streamed) return {};
    for (const KindFamily& one : kind_families)
      if (one.kind == row.kind) {
        const double share =
            sim::bandwidth_fraction(row.pass == "backward" ? one.backward : one.forward,
                                    workloads::Fusion::own, gpu_.architecture);
        return Known{static_cast<double>(row.bytes.value) / (share * gpu_.memory_bandwidth.value)};
      }
    return {};
  }

  std::optional<Known> of(const sim::CollectiveRow& row) const {
    const auto kind = sim::collective_named(row.collective);
    if (!kind || row.duration <= Duration{} || row.ranks < 2 || gpu_.architecture.host) return {};
    try {
      sim::Scenario s = machine_of(row);
      s.collective = sim::CollectiveQuery{*kind, row.bytes};
      const sim::CollectiveTime time = session_.collective(s).time;
      return Known{seconds(time.duration), time.provenance == sim::Provenance::measured};
    } catch (const InputError&) {
      return {};  // such a node is not in the catalogue
    }
  }

  std::optional<Known> of(const sim::CopyRow& row) const {
    if (gpu_.architecture.host || row.kind != "memory" || !copies_ || row.cache == "hot" ||
        (row.bytes.value > 0 && row.bytes < least_streamed))
      return {};
    return Known{1.0 / (*copies_ * gpu_.memory_bandwidth.value)};
  }

 private:
  sim::Scenario machine_of(const sim::CollectiveRow& row) const {
    const sim::Catalogue& catalogue = session_.catalogue();
    sim::Scenario s;
    s.tables = par_.tables;
    s.origin = "card";
    s.node = catalogue.node(catalogue.node_of_gpu(gpu_.name, "card").value("card"));
    s.nodes = std::max<std::int64_t>(1, row.nodes);
    s.gpus = row.ranks;
    if (const std::int64_t in_node = row.ranks / s.nodes; in_node < s.node.gpus && s.nodes > 1)
      s.gpus_per_domain = in_node;
    if (row.node_bandwidth.value > 0 && s.node.nics > 0)
      s.node.nic = BytesPerSecond(row.node_bandwidth.value / static_cast<double>(s.node.nics));
    s.fabric = catalogue.fabric(sim::toml_text("rail-optimized", "card"));
    const std::string nccl = par_.nccl.empty() ? row.nccl : par_.nccl;
    if (!nccl.empty()) s.nccl = nccl;
    return s;
  }

  topology::GpuSpec gpu_;
  sim::GemmTimes gemms_;
  sim::AttentionTimes attentions_;
  std::optional<double> copies_;
  const Par& par_;
  sim::Session& session_;
};

/// The times of rows by what they measured, of one family, and the largest spread among them.
struct Times {
  std::vector<double> times;
  double spread = 0;
};
using Exact = std::map<std::vector<sim::Cell>, Times>;

std::string joined(std::initializer_list<std::string_view> words) {
  std::string out;
  for (const std::string_view word : words)
    if (!word.empty()) out += (out.empty() ? "" : " ") + std::string(word);
  return out;
}

class CardWriter {
 public:
  CardWriter(Card& card, const CalibrationTable& measured, const CalibrationTable& par,
             sim::Session& session)
      : card_(card), measured_(measured), par_(par), session_(session) {
    for (const Family& family : sim::families())
      for (std::size_t row = 0; row < family.size(par); ++row)
        if (const double time = row_time(family, par, row); time > 0) {
          Times& times = exact_[family.name][sim::key_of(family, par, row)];
          times.times.push_back(time);
          times.spread = std::max(times.spread, family.quality(par, row).spread);
        }
  }

  /// `group` names a row, `counts` whether it is on the card at all.
  template <class Rows, class Group, class Counts>
  void add(const char* name, const Rows& rows, const Group& group, const Counts& counts) {
    const auto& families = sim::families();
    const auto family = std::ranges::find_if(
        families, [&](const Family& f) { return f.name == std::string(name); });
    expects(family != families.end(), "a family of the table");
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (counts(rows[i])) add(*family, i, rows[i], group(rows[i]));
  }

  /// What a kernel takes beside a collective, of its time alone, by the model of interference.
  void add_overlaps() {
    for (const sim::OverlapRow& row : measured_.overlaps) {
      const std::string group = "kernel beside " + row.collective;
      const auto stretch = modelled_stretch(row, session_);
      const double taken = seconds(row.kernel_beside) / seconds(row.kernel_alone);
      if (stretch && std::isfinite(taken))
        card_.rows.push_back({group, row.kernel, fmt::format("{:.2f} times as long", taken),
                              fmt::format("{:.2f} times", *stretch), taken / *stretch, false,
                              row.quality.spread});
      else
        leave(group, fmt::format("{:.2f} times as long", taken));
    }
  }

  void finish() {
    for (const auto& [group, one] : unmatched_) card_.unmatched.push_back(one);
  }

 private:
  template <class Row>
  void add(const Family& family, std::size_t index, const Row& row, const std::string& group) {
    const double time = row_time(family, measured_, index);
    if (!(time > 0)) return;
    std::optional<Known> known = exactly(family, index);
    if constexpr (requires(const Forecasts& f) { f.of(row); })
      if (!known)
        if (const Forecasts* forecasts = forecasts_of(row.gpu)) {
          known = forecasts->of(row);
          if (known) known->seconds /= work_of(row);
        }
    if (!known || !(known->seconds > 0)) {
      return leave(group, row_figure(family, measured_, index));
    }
    const double ratio = time / known->seconds;
    card_.rows.push_back({group, name_of(row, family, index), row_figure(family, measured_, index),
                          row_figure(family, measured_, index, 1.0 / ratio), ratio, known->measured,
                          std::max(known->spread, family.quality(measured_, index).spread)});
  }

  void leave(const std::string& group, std::string figure) {
    Unmatched& one = unmatched_[group];
    one = {group, one.rows + 1, std::move(figure)};
  }

  template <class Row>
  std::string name_of(const Row&, const Family& family, std::size_t index) const {
    return row_name(family, measured_, index);
  }
  std::string name_of(const sim::CollectiveRow& row, const Family&, std::size_t) const {
    return row.bytes.value > 0 ? stepcast::to_text(row.bytes) : "peak";
  }

  std::optional<Known> exactly(const Family& family, std::size_t index) const {
    const auto table = exact_.find(family.name);
    if (table == exact_.end()) return {};
    const auto found = table->second.find(sim::key_of(family, measured_, index));
    if (found == table->second.end()) return {};
    return Known{median(found->second.times), true, found->second.spread};
  }

  /// Null where the catalogue lacks the GPU.
  const Forecasts* forecasts_of(const std::string& gpu) {
    auto& forecasts = forecasts_[gpu];
    if (forecasts || !asked_.insert(gpu).second) return forecasts.get();
    const sim::GpuIdentity* identity = session_.catalogue().gpus().find(gpu);
    if (identity == nullptr) return nullptr;
    const topology::GpuSpec spec =
        session_.catalogue().gpu(sim::toml_text(identity->gpu.name, "card"));
    forecasts = std::make_unique<Forecasts>(spec, par_, card_.par, session_);
    return forecasts.get();
  }

  Card& card_;
  const CalibrationTable& measured_;
  const CalibrationTable& par_;
  sim::Session& session_;
  std::map<std::string, Exact> exact_;
  std::map<std::string, std::unique_ptr<Forecasts>> forecasts_;
  std::set<std::string> asked_;
  std::map<std::string, Unmatched> unmatched_;
};

}  // namespace

bool CardRow::is_below(const Par& held) const { return ratio > 1.0 + held.slack + spread; }

std::vector<const CardRow*> Card::below() const {
  std::map<std::string, const CardRow*> worst;
  for (const CardRow& row : rows) {
    if (!row.is_below(par)) continue;
    const CardRow*& one = worst[row.group + row.name];
    if (one == nullptr || row.ratio > one->ratio) one = &row;
  }
  std::vector<const CardRow*> out;
  for (const auto& [name, row] : worst) out.push_back(row);
  std::ranges::stable_sort(out, [](const auto* a, const auto* b) { return a->ratio > b->ratio; });
  return out;
}

std::size_t Card::num_below() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(rows, [&](const CardRow& row) { return row.is_below(par); }));
}

Card card_of(const CalibrationTable& measured, const Par& par, sim::Session& session) {
  Card card;
  card.par = par;
  std::set<std::string> gpus, machines;
  for (const Family& family : sim::families())
    for (std::size_t row = 0; row < family.size(measured); ++row) {
      gpus.insert(std::string(std::get<std::string_view>(family.columns[0].get(measured, row))));
      const sim::MeasuredOn& on = family.source(measured, row)->on;
      if (!on.device.empty())
        machines.insert(joined({on.device, "on", on.date, "driver", on.driver, on.clocks}));
    }
  card.gpus.assign(gpus.begin(), gpus.end());
  card.machines.assign(machines.begin(), machines.end());

  const auto all = [](const auto&) { return true; };
  const auto tables = session.tables(par.tables);
  CardWriter writer(card, measured, *tables, session);
  writer.add(
      "gemm", measured.gemm,
      [](const sim::GemmRow& r) {
        return joined({r.groups > 0 ? "grouped product" : "product", r.dtype, r.layout,
                       r.accumulate ? "accumulating" : "", r.is_best() ? r.choice : "",
                       r.cache == "hot" ? r.cache : ""});
      },
      all);
  writer.add(
      "attention", measured.attention,
      [](const sim::AttentionRow& r) {
        return joined({"attention", r.implementation, r.dtype, r.pass});
      },
      all);
  writer.add(
      "elementwise", measured.elementwise,
      [](const sim::ElementwiseRow& r) {
        return joined({r.kind, r.dtype, r.pass});
      },
      all);
  writer.add(
      "collectives", measured.collectives,
      [](const sim::CollectiveRow& r) {
        return fmt::format("{} on {} ranks{}{}", r.collective, r.ranks,
                           r.nodes > 1 ? fmt::format(" of {} nodes", r.nodes) : "",
                           r.fabric.empty() ? "" : ", " + r.fabric);
      },
      [](const sim::CollectiveRow& r) { return r.algorithm.empty() && r.protocol.empty(); });
  writer.add(
      "copies", measured.copies,
      [](const sim::CopyRow& r) {
        return joined({"copy:", r.what});
      },
      all);
  writer.add(
      "launches", measured.launches,
      [](const sim::LaunchRow& r) { return "launch of a " + r.what; }, all);
  writer.add_overlaps();
  writer.finish();
  return card;
}

}  // namespace stepcast::calibrate
