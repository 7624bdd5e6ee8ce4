#include "workloads/plan/rules.hpp"

#include <algorithm>
#include <numeric>

#include "workloads/plan/layer_shape.hpp"

namespace stepcast::workloads {
namespace {

using Asked = const PlanCase&;

std::string number(std::int64_t v) { return std::to_string(v); }

/// Micro-batches in each round of interleaved 1F1B (torch pipelining/schedules.py).
std::int64_t rounds(Asked a) {
  return std::max<std::int64_t>(1, a.batch.micro_batches / a.plan.pipeline);
}

std::int64_t tokens_of_context_rank(Asked a) { return a.batch.sequence / a.plan.context; }

bool has_short_window(Asked a) { return a.shape.window > 0 && a.shape.window < a.batch.sequence; }

bool wrong_number_of_parts(Asked a) {
  return !a.plan.stage_layers.empty() && std::ssize(a.plan.stage_layers) != a.plan.parts();
}

/// The first part with too few layers; only the first and the last of several may hold none.
std::size_t part_without_layers(Asked a) {
  const auto& layers = a.plan.stage_layers;
  std::size_t k = 0;
  for (; k < layers.size(); ++k) {
    const bool end = a.plan.parts() > 1 && (k == 0 || k + 1 == layers.size());
    if (layers[k] < (end ? 0 : 1)) break;
  }
  return k;
}

std::int64_t sum_of_stage_layers(Asked a) {
  return std::accumulate(a.plan.stage_layers.begin(), a.plan.stage_layers.end(), std::int64_t{0});
}

bool dual(Asked a) {
  return a.plan.schedule == Schedule::dualpipe || a.plan.schedule == Schedule::dualpipe_v;
}
bool two_chunks(Asked a) { return dual(a) || a.plan.schedule == Schedule::zb_v; }
const ListedOrders* listed(Asked a) {
  return a.plan.schedule == Schedule::listed ? a.plan.orders.list.get() : nullptr;
}
std::string schedule_text(Asked a) {
  return listed(a) != nullptr ? listed(a)->file : std::string(name_of(a.plan.schedule));
}

/// The fewest layers of a part of the model.
std::int64_t least_layers(Asked a) {
  std::int64_t least = a.shape.layers;
  for (std::int64_t part = 0; part < a.plan.parts(); ++part)
    least = std::min(least, layers_of_part(a.shape.layers, a.plan, part));
  return least;
}
bool one_share(double share) { return share >= 0.0 && share <= 1.0; }

bool has_mixer(Asked a, bool (*is)(Mixer)) {
  return any_layer(a.shape, [&](const LayerForm& f) { return is(f.mixer); });
}
bool has_delta(Asked a) {
  return has_mixer(a, [](Mixer m) { return m == Mixer::delta; });
}
bool has_states(Asked a) { return has_mixer(a, has_state_space); }
/// Ranks that share heads: each has whole sequences of its part.
std::int64_t ranks_of_heads(Asked a) { return a.plan.tensor * a.plan.context; }
/// A dense width of a layer's own that tensor ranks cannot cut; 0: there is none.
std::int64_t uncut_width(Asked a) {
  for (const LayerForm& form : a.shape.pattern)
    if (form.ffn % a.plan.tensor != 0) return form.ffn;
  return 0;
}

constexpr Rule<PlanCase> rules[] = {
    {"recompute_every",
     [](Asked a) { return a.plan.recompute_every > 1 && a.plan.recompute != Recompute::full; },
     [](Asked a) {
       return "recompute_every is " + number(a.plan.recompute_every) + " without full recompute";
     },
     [](Asked) { return std::string("only whole layers are recomputed or kept one by one"); },
     "recompute_every"},
    {"prefetch", [](Asked a) { return a.plan.prefetch < 0; },
     [](Asked a) { return "prefetch is " + number(a.plan.prefetch); },
     [](Asked) { return std::string("it must be at least 0"); }},
    {"sequence",
     [](Asked a) { return learned_positions(a.shape) && a.batch.sequence > a.shape.max_positions; },
     [](Asked a) {
       if (a.shape.max_positions == 0)
         return std::string("the model learns its positions, and nothing says how many");
       return "sequence " + number(a.batch.sequence) + " is longer than the model's " +
              number(a.shape.max_positions) + " positions";
     },
     [](Asked a) {
       return std::string(a.shape.max_positions == 0
                              ? "give model.max_positions, --max-position-embeddings of Megatron"
                              : "shorten model.sequence or raise max_positions");
     }},
    {"virtual_stages", [](Asked a) { return a.plan.virtual_stages > 1 && a.plan.pipeline == 1; },
     [](Asked a) {
       return "virtual_stages " + number(a.plan.virtual_stages) + " without a pipeline";
     },
     [](Asked) { return std::string("interleaving needs at least 2 stages"); }, "virtual_stages"},
    {"virtual_stages",
     [](Asked a) {
       return a.plan.virtual_stages > 1 &&
              (a.plan.schedule == Schedule::gpipe || a.plan.schedule == Schedule::zb_h2);
     },
     [](Asked a) {
       return "virtual_stages " + number(a.plan.virtual_stages) + " with " +
              std::string(name_of(a.plan.schedule));
     },
     [](Asked) { return std::string("1f1b and zb_h1 are interleaved"); }, "virtual_stages"},
    {"virtual_stages",
     [](Asked a) {
       const bool rounds_of_chunks =
           a.plan.schedule == Schedule::one_f_one_b || a.plan.schedule == Schedule::zb_h1;
       return a.plan.virtual_stages > 1 && rounds_of_chunks &&
              a.batch.micro_batches % rounds(a) != 0;
     },
     [](Asked a) {
       return "interleaved 1f1b cannot run " + number(a.batch.micro_batches) +
              " micro-batches on " + number(a.plan.pipeline) + " stages";
     },
     [](Asked) { return std::string("take a multiple of the pipeline degree"); }, "virtual_stages"},
    {"schedule", [](Asked a) { return two_chunks(a) && a.plan.pipeline == 1; },
     [](Asked a) { return schedule_text(a) + " without a pipeline"; },
     [](Asked) { return std::string("it needs at least 2 stages"); }, "schedule"},
    {"virtual_stages", [](Asked a) { return two_chunks(a) && a.plan.virtual_stages != 2; },
     [](Asked a) {
       return schedule_text(a) + " with virtual_stages " + number(a.plan.virtual_stages);
     },
     [](Asked) { return std::string("its stages have two parts of the model each"); }},
    {"schedule",
     [](Asked a) {
       return a.plan.schedule == Schedule::dualpipe &&
              (a.plan.pipeline % 2 != 0 || a.batch.micro_batches % 2 != 0);
     },
     [](Asked a) {
       return "dualpipe on " + number(a.plan.pipeline) + " stages with " +
              number(a.batch.micro_batches) + " micro-batches";
     },
     [](Asked) { return std::string("half of either runs the other way: both must be even"); },
     "schedule"},
    {"schedule", [](Asked a) { return dual(a) && a.batch.micro_batches < 2 * a.plan.pipeline; },
     [](Asked a) {
       return schedule_text(a) + " with " + number(a.batch.micro_batches) + " micro-batches on " +
              number(a.plan.pipeline) + " stages";
     },
     [](Asked a) {
       return "it needs twice as many as stages, " + number(2 * a.plan.pipeline) + " or more";
     },
     "schedule"},
    {"schedule",
     [](Asked a) { return listed(a) && std::ssize(listed(a)->stages) != a.plan.pipeline; },
     [](Asked a) {
       return schedule_text(a) + " has the orders of " + number(std::ssize(listed(a)->stages)) +
              " stages";
     },
     [](Asked a) { return "the plan has pipeline = " + number(a.plan.pipeline); }},
    {"schedule",
     [](Asked a) { return listed(a) && listed(a)->micro_batches != a.batch.micro_batches; },
     [](Asked a) {
       return schedule_text(a) + " runs " + number(listed(a)->micro_batches) + " micro-batches";
     },
     [](Asked a) { return "the step has " + number(a.batch.micro_batches); }},
    {"virtual_stages",
     [](Asked a) { return listed(a) && listed(a)->chunks != a.plan.virtual_stages; },
     [](Asked a) {
       return schedule_text(a) + " with virtual_stages " + number(a.plan.virtual_stages);
     },
     [](Asked a) {
       return "the file has parts of the model on each stage: " + number(listed(a)->chunks);
     }},
    {"stage_layers", wrong_number_of_parts,
     [](Asked a) {
       return "stage_layers has " + number(std::ssize(a.plan.stage_layers)) + " numbers";
     },
     [](Asked a) {
       if (a.plan.placement() == Placement::mirrored)
         return "one for each part of the model: pipeline " + number(a.plan.pipeline);
       return "one for each part of the model: pipeline " + number(a.plan.pipeline) +
              " x virtual_stages " + number(a.plan.virtual_stages) + " = " + number(a.plan.parts());
     }},
    {"stage_layers", [](Asked a) { return part_without_layers(a) < a.plan.stage_layers.size(); },
     [](Asked a) {
       const std::size_t k = part_without_layers(a);
       return "stage_layers gives part " + std::to_string(k) + " of the model " +
              number(a.plan.stage_layers[k]) + " layers";
     },
     [](Asked) { return std::string("only the first and the last part may hold none"); }},
    {"stage_layers",
     [](Asked a) {
       return !a.plan.stage_layers.empty() && sum_of_stage_layers(a) != a.shape.layers;
     },
     [](Asked a) { return "stage_layers add up to " + number(sum_of_stage_layers(a)); },
     [](Asked a) { return "the model has " + number(a.shape.layers) + " layers"; }},
    {"pipeline",
     [](Asked a) { return a.plan.stage_layers.empty() && a.plan.parts() > a.shape.layers; },
     [](Asked a) {
       return (a.plan.virtual_stages > 1
                   ? "pipeline degree x virtual_stages " + number(a.plan.parts()) + " exceeds"
                   : "pipeline degree " + number(a.plan.pipeline) + " exceeds") +
              " the " + number(a.shape.layers) + " layers of the model";
     },
     [](Asked) { return std::string("a stage needs at least one layer"); }},
    // Causal attention is balanced by two chunks of the sequence a rank, one from each end.
    {"context",
     [](Asked a) { return a.plan.context > 1 && a.batch.sequence % (2 * a.plan.context) != 0; },
     [](Asked a) {
       return "sequence " + number(a.batch.sequence) + " is no multiple of 2 x context degree " +
              number(a.plan.context);
     },
     [](Asked) { return std::string("each rank holds two chunks of the sequence"); }, "context"},
    {"context", [](Asked a) { return a.plan.context > 1 && has_short_window(a); },
     [](Asked a) {
       return "context degree " + number(a.plan.context) + " with a window of " +
              number(a.shape.window);
     },
     [](Asked) { return std::string("which rank sees which keys is not modelled: context 1"); },
     "context"},
    {"context", [](Asked a) { return a.plan.context > 1 && a.shape.index.heads > 0; },
     [](Asked a) { return "context degree " + number(a.plan.context) + " with an index of keys"; },
     [](Asked) { return std::string("which rank scores which keys is not modelled: context 1"); },
     "context"},
    {"context",
     [](Asked a) { return has_delta(a) && a.shape.delta.value_heads % ranks_of_heads(a) != 0; },
     [](Asked a) {
       return does_not_divide("tensor x context degree", ranks_of_heads(a), "delta_value_heads",
                              a.shape.delta.value_heads);
     },
     [](Asked a) { return divisors_hint(a.shape.delta.value_heads); }, "context"},
    {"context",
     [](Asked a) { return has_states(a) && a.shape.state_space.heads % ranks_of_heads(a) != 0; },
     [](Asked a) {
       return does_not_divide("tensor x context degree", ranks_of_heads(a), "ssm_heads",
                              a.shape.state_space.heads);
     },
     [](Asked a) { return divisors_hint(a.shape.state_space.heads); }, "context"},
    {"tensor", [](Asked a) { return has_delta(a) && a.shape.delta.key_heads % a.plan.tensor != 0; },
     [](Asked a) {
       return does_not_divide("tensor degree", a.plan.tensor, "delta_key_heads",
                              a.shape.delta.key_heads);
     },
     [](Asked a) { return divisors_hint(a.shape.delta.key_heads); }, "tensor"},
    {"tensor", [](Asked a) { return a.shape.window_heads % a.plan.tensor != 0; },
     [](Asked a) {
       return does_not_divide("tensor degree", a.plan.tensor, "window_heads", a.shape.window_heads);
     },
     [](Asked a) { return divisors_hint(a.shape.window_heads); }, "tensor"},
    {"tensor",
     [](Asked a) {
       return a.plan.tensor <= a.shape.window_kv_heads &&
              a.shape.window_kv_heads % a.plan.tensor != 0;
     },
     [](Asked a) {
       return does_not_divide("tensor degree", a.plan.tensor, "window_kv_heads",
                              a.shape.window_kv_heads);
     },
     [](Asked a) { return divisors_hint(a.shape.window_kv_heads); }, "tensor"},
    {"tensor", [](Asked a) { return uncut_width(a) > 0; },
     [](Asked a) {
       return does_not_divide("tensor degree", a.plan.tensor, "an MLP's width", uncut_width(a));
     },
     [](Asked a) { return divisors_hint(uncut_width(a)); }, "tensor"},
    {"tensor_overlap",
     [](Asked a) {
       return a.plan.tensor_overlap != TensorOverlap::none && a.plan.tensor > 1 &&
              !a.plan.sequence_parallel;
     },
     [](Asked a) {
       return "tensor_overlap = \"" + std::string(name_of(a.plan.tensor_overlap)) +
              "\" without sequence_parallel";
     },
     [](Asked) { return std::string("what it gathers and scatters is the sequence"); }},
    {"activation_offload", [](Asked a) { return !one_share(a.plan.offload.activations); },
     [](Asked) { return std::string("activation_offload is no share"); },
     [](Asked) { return std::string("0 keeps all on the GPU, 1 offloads all"); }},
    {"optimizer_offload", [](Asked a) { return !one_share(a.plan.offload.optimizer); },
     [](Asked) { return std::string("optimizer_offload is no share"); },
     [](Asked) { return std::string("0 keeps all on the GPU, 1 offloads all"); }},
    {"parameter_offload", [](Asked a) { return !one_share(a.plan.offload.parameters); },
     [](Asked) { return std::string("parameter_offload is no share"); },
     [](Asked) { return std::string("0 keeps all on the GPU, 1 offloads all"); }},
    {"parameter_offload",
     [](Asked a) { return a.plan.offload.parameters > 0.0 && a.plan.data != DataParallel::zero3; },
     [](Asked a) {
       return "parameter_offload with data = \"" + std::string(name_of(a.plan.data)) + "\"";
     },
     [](Asked) { return std::string("shards of parameters are offloaded: data = \"zero3\""); }},
    {"parameter_offload",
     [](Asked a) { return a.plan.offload.parameters > a.plan.offload.optimizer; },
     [](Asked) { return std::string("parameter_offload above optimizer_offload"); },
     [](Asked) {
       return std::string(
           "parameters go with their optimizer: optimizer_offload at least as large");
     }},
    {"mlp_tiles",
     [](Asked a) {
       return a.plan.mlp_tiles > 1 && (a.shape.experts.count > 0 || a.plan.tensor > 1);
     },
     [](Asked a) {
       return "mlp_tiles = " + number(a.plan.mlp_tiles) + " with experts or tensor ranks";
     },
     [](Asked) { return std::string("a dense MLP that no other rank shares goes in tiles"); }},
    {"activation_offload",
     [](Asked a) {
       return a.plan.offload.activations > 0.0 && a.plan.schedule != Schedule::gpipe &&
              a.plan.schedule != Schedule::one_f_one_b;
     },
     [](Asked a) { return "activation_offload with schedule = \"" + schedule_text(a) + "\""; },
     [](Asked) { return std::string("it is known of 1f1b and gpipe, whose backwards are whole"); }},
    {"activation_offload",
     [](Asked a) { return a.plan.offload.activations > 0.0 && least_layers(a) < 2; },
     [](Asked a) {
       return "activation_offload with a part of the model of " + number(least_layers(a)) +
              " layers";
     },
     [](Asked) { return std::string("the last layer of each part stays: parts need 2 or more"); }},
    // hsdp: the ranks that share a copy divide all copies.
    {"shard_degree",
     [](Asked a) { return a.plan.shard_degree != 0 && a.plan.data == DataParallel::ddp; },
     [](Asked a) { return "shard_degree " + number(a.plan.shard_degree) + " with data = \"ddp\""; },
     [](Asked) { return std::string("ddp shards nothing: take zero1, zero2 or zero3"); },
     "shard_degree"},
    {"shard_degree", [](Asked a) { return a.plan.shard_degree < 0; },
     [](Asked a) { return "shard_degree is " + number(a.plan.shard_degree); },
     [](Asked) { return std::string("it must be at least 1"); }},
    {"shard_degree", [](Asked a) { return a.plan.shard_degree == 1 && a.plan.copies() > 1; },
     [](Asked) { return std::string("shard_degree is 1"); },
     [](Asked) { return std::string("whole copies everywhere are data = \"ddp\""); },
     "shard_degree"},
    {"shard_degree",
     [](Asked a) { return a.plan.shard_degree != 0 && a.plan.copies() % a.plan.shard_degree != 0; },
     [](Asked a) {
       return does_not_divide("shard_degree", a.plan.shard_degree, "data x context degree",
                              a.plan.copies());
     },
     [](Asked a) { return divisors_hint(a.plan.copies()); }, "shard_degree"},
    {"tensor", [](Asked a) { return a.shape.heads % a.plan.tensor != 0; },
     [](Asked a) {
       return does_not_divide("tensor degree", a.plan.tensor, "heads", a.shape.heads);
     },
     [](Asked a) { return divisors_hint(a.shape.heads); }, "tensor"},
    // kv heads are split while there are enough; beyond that each rank keeps one (replicated).
    {"tensor",
     [](Asked a) {
       return a.plan.tensor <= a.shape.kv_heads && a.shape.kv_heads % a.plan.tensor != 0;
     },
     [](Asked a) {
       return does_not_divide("tensor degree", a.plan.tensor, "kv_heads", a.shape.kv_heads);
     },
     [](Asked a) { return divisors_hint(a.shape.kv_heads); }, "tensor"},
    {"tensor",
     [](Asked a) {
       return a.plan.tensor > a.shape.kv_heads && a.plan.tensor % a.shape.kv_heads != 0;
     },
     [](Asked a) {
       return "tensor degree " + number(a.plan.tensor) + " is no multiple of kv_heads " +
              number(a.shape.kv_heads);
     },
     [](Asked) { return std::string("take a divisor or a multiple of kv_heads"); }, "tensor"},
    {"tensor", [](Asked a) { return a.shape.ffn_hidden % a.plan.tensor != 0; },
     [](Asked a) {
       return does_not_divide("tensor degree", a.plan.tensor, "ffn_hidden", a.shape.ffn_hidden);
     },
     [](Asked a) { return divisors_hint(a.shape.ffn_hidden); }, "tensor"},
    {"tensor",
     [](Asked a) { return a.shape.mtp_layers > 0 && a.shape.hidden % a.plan.tensor != 0; },
     [](Asked a) {
       return does_not_divide("tensor degree", a.plan.tensor, "hidden", a.shape.hidden);
     },
     [](Asked a) { return divisors_hint(a.shape.hidden); }, "tensor"},
    {"tensor", [](Asked a) { return a.shape.vocab % a.plan.tensor != 0; },
     [](Asked a) {
       return does_not_divide("tensor degree", a.plan.tensor, "vocab", a.shape.vocab);
     },
     [](Asked a) { return divisors_hint(a.shape.vocab); }, "tensor"},
    {"sequence_parallel",
     [](Asked a) {
       return a.plan.sequence_parallel && tokens_of_context_rank(a) % a.plan.tensor != 0;
     },
     [](Asked a) {
       return does_not_divide("tensor degree (sequence parallel)", a.plan.tensor,
                              a.plan.context == 1 ? "sequence" : "the sequence on a context rank,",
                              tokens_of_context_rank(a));
     },
     [](Asked a) { return divisors_hint(tokens_of_context_rank(a)); }, "sequence_parallel"},
};

}  // namespace

std::string divisors_hint(std::int64_t value) {
  std::string hint = "degrees that do:";
  for (std::int64_t d = 1; d <= std::min<std::int64_t>(value, 64); ++d)
    if (value % d == 0) hint += " " + number(d);
  return hint;
}

std::string does_not_divide(std::string_view degree_name, std::int64_t degree,
                            std::string_view name, std::int64_t value) {
  return std::string(degree_name) + " " + number(degree) + " does not divide " + std::string(name) +
         " " + number(value);
}

std::span<const Rule<PlanCase>> plan_rules() { return rules; }

}  // namespace stepcast::workloads
