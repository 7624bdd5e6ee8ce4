#include "calibrate/fit/network.hpp"

#include <nlopt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <type_traits>

#include "calibrate/rows/source_key.hpp"
#include "engine/arithmetic.hpp"
#include "engine/check.hpp"
#include "sim/network/measured_time.hpp"
#include "sim/network/nccl/choice.hpp"
#include "sim/network/nccl/time.hpp"

namespace stepcast::calibrate {
namespace {

using sim::NetworkConstants;
using workloads::CollectiveKind;

bool has_choice(CollectiveKind kind) {
  return kind != CollectiveKind::send_receive && kind != CollectiveKind::all_to_all;
}

/// A row with all that does not depend on the constants: what NCCL runs for it, and where.
struct Sample {
  sim::CollectiveRow row;
  CollectiveCase question;
  std::shared_ptr<const sim::NcclTuning> tuning;
  sim::NcclMachine machine;
  sim::NcclOption option;

  Duration predicted(const NetworkConstants& c) const {
    const sim::NcclTime time =
        has_choice(question.kind)
            ? sim::nccl_time(*tuning, machine, question.kind, question.bytes, option, c)
            : sim::point_to_point_time(machine, question.kind, question.bytes, c);
    return sim::as_measured(time.total(), row, c.measurement);
  }
  /// |log of predicted / measured|; errors within what can be read off a plot count nothing.
  double loss(const NetworkConstants& c) const {
    const Duration time = predicted(c);
    if (error_of(time, row, question.kind) == 0.0) return 0.0;
    return std::abs(std::log(seconds(time) / seconds(row.duration)));
  }
};

/// The protocol that a row ran with, whatever NCCL would take here.
sim::NcclOverrides pinned_to(std::optional<sim::Protocol> protocol) {
  sim::NcclOverrides out;
  if (protocol) out.protocols.fill(sim::ProtocolSet{}.set(static_cast<std::size_t>(*protocol)));
  return out;
}

sim::CollectiveRow with_size(sim::CollectiveRow row, CollectiveKind kind) {
  row.bytes = Bytes(std::int64_t{8} << 30);
  row.duration = to_duration(static_cast<double>(row.bytes.value) *
                             sim::bus_factor(kind, row.ranks) / row.busbw.value);
  return row;
}

class Samples {
 public:
  Samples(const std::vector<sim::CollectiveRow>& rows, const sim::Catalogue& catalogue,
          const FitOptions& options)
      : cases_(catalogue), directory_(catalogue.directory() + "/nccl"), options_(options) {
    for (const sim::CollectiveRow& row : rows) add(row);
  }
  std::vector<Sample> take() { return std::move(samples_); }

 private:
  void add(sim::CollectiveRow row) {
    if (row.source->confidence == "low") return;
    try {
      if (row.bytes <= Bytes(0) && row.busbw.value > 0 && row.ranks > 1)
        row = with_size(row, kind_of(row));
      samples_.push_back(sample_of(row));
    } catch (const Unpredictable&) {  // validate lists them with their reasons
    }
  }

  Sample sample_of(const sim::CollectiveRow& row) {
    Sample s{row, cases_.case_of(row), tuning_of(row.nccl), {}, {}};
    s.machine = sim::nccl_machine(s.question.node, s.question.shape);
    if (has_choice(s.question.kind))
      s.option = sim::nccl_choice(*s.tuning, s.machine, {s.question.kind, s.question.bytes},
                                  pinned_to(s.question.protocol));
    return s;
  }

  std::shared_ptr<const sim::NcclTuning> tuning_of(const std::string& stated) {
    const std::string version = stated.empty() ? options_.nccl : stated;
    auto& tuning = tunings_[version];
    if (!tuning) try {
        tuning = std::make_shared<sim::NcclTuning>(sim::nccl_tuning_of(directory_, version));
      } catch (const InputError&) {
        throw Unpredictable{"NCCL " + version + " has no choice table"};
      }
    return tuning;
  }

  CollectiveCases cases_;
  std::string directory_;
  FitOptions options_;
  std::vector<Sample> samples_;
  std::map<std::string, std::shared_ptr<const sim::NcclTuning>> tunings_;
};

/// Reads or writes the constant number `index` of a set: durations in microseconds.
double constant(NetworkConstants& c, std::size_t index, const double* value, std::string* name) {
  std::size_t at = 0;
  double out = 0.0;
  sim::visit_network_constants(
      c, [&](const std::string& table, const std::string& key, auto& member) {
        if (at++ != index) return;
        if (name != nullptr) *name = table + "." + key;
        if constexpr (std::is_same_v<std::remove_reference_t<decltype(member)>, Duration>) {
          if (value != nullptr) member = to_duration(*value * 1e-6);
          out = seconds(member) * 1e6;
        } else {
          if (value != nullptr) member = *value;
          out = member;
        }
      });
  return out;
}

std::size_t count_constants(NetworkConstants c) {
  std::size_t count = 0;
  sim::visit_network_constants(c, [&](const std::string&, const std::string&, auto&) { ++count; });
  return count;
}

/// All that is fitted on.
struct Evidence {
  std::vector<Sample> samples;
  std::vector<CrossoverCase> crossovers;

  std::size_t size() const { return samples.size() + crossovers.size(); }
};

double mean_loss(const Evidence& evidence, const NetworkConstants& c) {
  double sum = 0.0;
  for (const Sample& sample : evidence.samples) sum += sample.loss(c);
  for (const CrossoverCase& one : evidence.crossovers)
    sum += std::abs(std::log(one.ratio(one.crossover().bytes, c)));
  return sum / static_cast<double>(evidence.size());
}

/// Predictions that change by more than 1 % when the constant does by 30 %.
std::size_t rows_moved(const Evidence& evidence, NetworkConstants c, std::size_t index) {
  const NetworkConstants before = c;
  const double old = constant(c, index, nullptr, nullptr);
  const double moved = old > 0 ? 1.3 * old : 1.0;
  constant(c, index, &moved, nullptr);
  const auto moves = [](double after, double earlier) {
    return std::abs(after / earlier - 1) > 0.01;
  };
  const auto times = std::ranges::count_if(evidence.samples, [&](const Sample& s) {
    return moves(seconds(s.predicted(c)), seconds(s.predicted(before)));
  });
  const auto ratios = std::ranges::count_if(evidence.crossovers, [&](const CrossoverCase& one) {
    const Bytes at = one.crossover().bytes;
    return moves(one.ratio(at, c), one.ratio(at, before));
  });
  return static_cast<std::size_t>(times + ratios);
}

/// What NLopt minimises: constants as factors of where they began (or microseconds from 0).
struct Search {
  const Evidence& evidence;
  NetworkConstants constants;
  std::vector<std::size_t> free;  // indexes of the constants that are fitted
  std::vector<double> scale;

  void apply(const double* x) {
    for (std::size_t i = 0; i < free.size(); ++i) {
      const double value = x[i] * scale[i];
      constant(constants, free[i], &value, nullptr);
    }
  }
  static double objective(unsigned, const double* x, double*, void* data) {
    auto& search = *static_cast<Search*>(data);
    search.apply(x);
    return mean_loss(search.evidence, search.constants);
  }
};

/// What a constant cannot exceed: no wire carries more than it was built for. NCCL plans NVLink at
/// four fifths of that (20 of 25 GB/s), so shares of its plan reach 1.25; LL uses half of a wire
/// and LL128 15/16. Times: no hop of any network takes 150 us.
double upper_bound(const std::string& name) {
  const std::string key = name.substr(name.find('.') + 1);
  if (key == "ring_ll") return 0.5 * 1.25;
  if (key == "ring_ll128") return 15.0 / 16 * 1.25;
  if (key == "ring_simple" || key == "nvlink_tree") return 1.25;
  if (key == "nic_ll") return 0.5;
  if (key == "nic_ll128") return 15.0 / 16;
  static const std::set<std::string> shares{
      "tree",        "ll",        "ring_drain",    "p2p_nvlink", "all_to_all",
      "nvls_reduce", "nvls_tree", "nvls_gather",   "nvls_bus",   "bandwidth",
      "nic_ring",    "nic_tree",  "nic_nvls_tree", "nic_p2p"};
  if (shares.contains(key)) return 1.0;
  return key == "nvls_fill" || key == "tree_fill" || key == "nvls_tree_fill" ? 8.0 : 150.0;
}

/// A share of nothing would take for ever; times and fillings may vanish.
double lower_bound(const std::string& name) {
  const std::string key = name.substr(name.find('.') + 1);
  const bool may_vanish = upper_bound(name) > 1.25 || key == "ring_drain";
  return may_vanish ? 0.0 : 0.02;
}

/// Times that are looked for from 0 on.
bool is_of_a_network(const std::string& name) {
  return name.find(".hop_") != std::string::npos || name.find("message_") != std::string::npos;
}

void minimise(Search& search, const std::vector<std::string>& names, std::int64_t evaluations) {
  const auto n = static_cast<unsigned>(search.free.size());
  std::vector<double> x, lower, upper, step;
  for (unsigned i = 0; i < n; ++i) {
    const double now = constant(search.constants, search.free[i], nullptr, nullptr);
    search.scale.push_back(std::max(now, is_of_a_network(names[i]) ? 5.0 : 0.2));
    x.push_back(now / search.scale.back());
    lower.push_back(lower_bound(names[i]) / search.scale.back());
    upper.push_back(upper_bound(names[i]) / search.scale.back());
    step.push_back(0.1);
  }
  const std::unique_ptr<nlopt_opt_s, decltype(&nlopt_destroy)> opt(nlopt_create(NLOPT_LN_SBPLX, n),
                                                                   &nlopt_destroy);
  nlopt_set_min_objective(opt.get(), &Search::objective, &search);
  nlopt_set_lower_bounds(opt.get(), lower.data());
  nlopt_set_upper_bounds(opt.get(), upper.data());
  nlopt_set_initial_step(opt.get(), step.data());
  nlopt_set_xtol_rel(opt.get(), 1e-4);
  nlopt_set_maxeval(opt.get(), static_cast<int>(evaluations));
  double least = 0.0;
  const nlopt_result result = nlopt_optimize(opt.get(), x.data(), &least);
  ensures(result > 0 || result == NLOPT_ROUNDOFF_LIMITED, "NLopt finds a minimum");
  search.apply(x.data());
}

std::vector<CrossoverCase> cases_of(const std::vector<Crossover>& crossovers,
                                    const sim::Catalogue& catalogue, const FitOptions& options) {
  std::vector<CrossoverCase> out;
  if (crossovers.empty()) return out;
  const auto tuning = std::make_shared<const sim::NcclTuning>(
      sim::nccl_tuning_of(catalogue.directory() + "/nccl", options.nccl_of_crossovers));
  for (const Crossover& one : crossovers)
    if (one.scored) out.emplace_back(one, tuning);
  return out;
}

std::string group_of(const Sample& s) {
  static constexpr std::array generations{"Volta", "Ampere", "Hopper", "Blackwell"};
  return std::string(generations[static_cast<std::size_t>(s.question.node.gpu.architecture.nccl)]) +
         " " + s.row.collective + " " + s.row.fabric +
         (s.question.bytes < Bytes(1 << 20) ? ", below 1 MiB" : ", from 1 MiB");
}

std::vector<FitResidual> residuals_of(const std::vector<Sample>& samples,
                                      const NetworkConstants& constants) {
  std::map<std::string, std::vector<double>> errors;
  for (const Sample& s : samples) {
    const double error = error_of(s.predicted(constants), s.row, s.question.kind);
    errors[group_of(s)].push_back(error);
    errors["all"].push_back(error);
  }
  std::vector<FitResidual> out;
  for (auto& [group, values] : errors) {
    FitResidual r{group, values.size()};
    for (double& e : values) {
      r.bias += e / static_cast<double>(values.size());
      r.mean += std::abs(e) / static_cast<double>(values.size());
      e = std::abs(e);
    }
    r.median = upper_median(values);
    out.push_back(r);
  }
  return out;
}

}  // namespace

NetworkFit fit_network(const NetworkEvidence& shown, const sim::Catalogue& catalogue,
                       const NetworkConstants& start, const FitOptions& options) {
  const Evidence evidence{Samples(shown.rows, catalogue, options).take(),
                          cases_of(shown.crossovers, catalogue, options)};
  const std::vector<Sample>& samples = evidence.samples;
  if (evidence.size() == 0)
    throw InputError("fit-network", "none of the rows can be predicted",
                     "it takes collectives of NCCL on nodes that the catalogue has");
  NetworkFit fit{.constants = start, .fitted = {}, .residuals = {}, .rows = evidence.size()};
  Search search{evidence, start, {}, {}};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count_constants(start); ++i) {
    FittedConstant c;
    c.before = constant(search.constants, i, nullptr, &c.name);
    c.rows = rows_moved(evidence, start, i);
    c.held = c.rows < options.least_rows || options.hold.contains(c.name);
    if (!c.held) {
      search.free.push_back(i);
      names.push_back(c.name);
    }
    fit.fitted.push_back(std::move(c));
  }
  fit.objective_before = mean_loss(evidence, start);
  minimise(search, names, options.evaluations);
  fit.constants = search.constants;
  fit.objective_after = mean_loss(evidence, fit.constants);
  for (std::size_t i = 0; i < fit.fitted.size(); ++i)
    fit.fitted[i].after = constant(fit.constants, i, nullptr, nullptr);
  fit.residuals = residuals_of(samples, fit.constants);
  return fit;
}

std::vector<LeftOut> cross_validate(const NetworkEvidence& shown, const sim::Catalogue& catalogue,
                                    const NetworkConstants& start, const FitOptions& options) {
  const std::vector<sim::CollectiveRow>& rows = shown.rows;
  std::map<std::string, std::vector<sim::CollectiveRow>> sources;
  for (const sim::CollectiveRow& row : rows) sources[source_key(*row.source)].push_back(row);
  const NetworkConstants seen = fit_network(shown, catalogue, start, options).constants;
  std::vector<LeftOut> out;
  for (const auto& [key, own] : sources) {
    const std::vector<Sample> samples = Samples(own, catalogue, options).take();
    if (samples.empty()) continue;
    const NetworkConstants unseen =
        fit_network({without_source(rows, key), shown.crossovers}, catalogue, start, options)
            .constants;
    const auto median = [&](const NetworkConstants& c) {
      std::vector<double> errors;
      for (const Sample& s : samples)
        errors.push_back(std::abs(error_of(s.predicted(c), s.row, s.question.kind)));
      return upper_median(errors);
    };
    out.push_back({key, samples.size(), median(seen), median(unseen)});
  }
  return out;
}

}  // namespace stepcast::calibrate
