#include "sim/told/model_size_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/files/text_table.hpp"
#include "workloads/plan/lora.hpp"
#include "workloads/plan/model_size.hpp"

namespace stepcast::sim {
namespace {

using workloads::ModelParameters;

std::string parameters_text(const ModelParameters& all, const ModelParameters& active) {
  TextTable table;
  table.column("parameters", "", TextTable::Align::left);
  table.column("all");
  table.column("of a token");
  const auto row = [&](const char* name, std::int64_t of_all, std::int64_t of_token) {
    if (of_all > 0) table.row({name, grouped(of_all), grouped(of_token)});
  };
  constexpr std::pair<const char*, std::int64_t ModelParameters::*> parts[] = {
      {"embedding", &ModelParameters::embedding},
      {"attention", &ModelParameters::attention},
      {"norms", &ModelParameters::norms},
      {"dense MLP", &ModelParameters::dense_mlp},
      {"router", &ModelParameters::router},
      {"experts", &ModelParameters::experts},
      {"shared experts", &ModelParameters::shared_experts},
      {"further tokens (MTP)", &ModelParameters::mtp},
      {"head", &ModelParameters::head},
  };
  for (const auto& [name, part] : parts) row(name, all.*part, active.*part);
  row("total", all.total(), active.total());
  return table.text();
}

/// Of a model with adapters beside it.
std::string trained_text(const workloads::TransformerShape& shape) {
  if (!workloads::adapted(shape)) return "";
  return fmt::format("adapters of rank {}: {} parameters are trained\n", shape.lora.rank,
                     grouped(workloads::adapter_parameters(shape)));
}

}  // namespace

std::string model_size_text(const workloads::TransformerShape& shape) {
  using workloads::Counted;
  const std::int64_t sequence = workloads::learned_positions(shape)
                                    ? std::min<std::int64_t>(4096, shape.max_positions)
                                    : 4096;
  const auto giga = [](Flops flops) { return three_digits(flops.value / 1e9); };
  return parameters_text(parameters_by_part(shape, Counted::all),
                         parameters_by_part(shape, Counted::active)) +
         trained_text(shape) +
         fmt::format(
             "training, sequence {}: {} GFLOP per token (6 per weight, attention to all keys), "
             "{} (attention to the keys before alone, as Megatron-Bridge counts)\n",
             sequence, giga(workloads::model_flops(shape, 1, sequence)),
             giga(workloads::causal_model_flops(shape, 1, sequence)));
}

}  // namespace stepcast::sim
