// How frameworks share a model's layers among the stages of a pipeline unless they are told.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/plan/transformer.hpp"

namespace stepcast::workloads {

/// What a framework balances.
/// - blocks: the transformer's layers alone, the first parts take the remainder (Megatron;
/// DeepSpeed
///   type:transformer of Microsoft's Megatron-DeepSpeed and of GPT-NeoX, pipe_partition_method).
/// - embeddings: embedding and head count as a layer each (BigScience's Megatron-DeepSpeed,
///   type:transformer|embedding; Megatron's account_for_embedding_in_pipeline_split and _loss_).
/// - modules: a list of modules in equal numbers, embedding 1, final norm and head 2 (DeepSpeed
///   uniform; Aleph Alpha scaling, pipeline_partitioning.py).
/// - parameters: the largest stage holds as few parameters as it can (DeepSpeed's default,
///   runtime/pipe/module.py; as the older of its two partition_balanced() has it).
/// - products: multiply-adds of layers and head; a part ends with the layer that takes it beyond
/// its
///   share (nanotron, get_block_compute_costs() and models/base.py build_model()).
enum class StageSplit : std::uint8_t { blocks, embeddings, modules, parameters, products };

/// Layers of each of `parts` > 0 parts; empty: as many as layers_of_stage() says, which is also
/// what comes of a rule that leaves a part between the others without a layer. nanotron may put the
/// head alone on the last part but one and the loss on the last; a part between the others then
/// keeps one layer here.
std::vector<std::int64_t> stage_layers(StageSplit, const TransformerShape&, std::int64_t parts);

}  // namespace stepcast::workloads
