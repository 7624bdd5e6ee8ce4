// The software of a scenario that leaves it open: the framework that users of such a plan run, and
// the version and NCCL that know its GPU. Knows documents and the catalogue.
#pragma once

#include <string>

#include "sim/files/toml_table.hpp"
#include "sim/scenario/catalogue.hpp"
#include "topology/specs.hpp"
#include "workloads/plan/software.hpp"
#include "workloads/plan/transformer.hpp"

namespace stepcast::sim {

/// The document with software.framework set, unless it names one or asks for a collective. The
/// value's place says why it was taken. One for all points of a [sweep]: by the data kind of the
/// first, and by whether any cuts the model.
TomlValue with_framework(TomlValue document);

/// Why with_framework() took the framework of a document; empty: the document names it itself.
std::string framework_by_default(const TomlValue& document);

/// Torch's own frameworks run no layers of experts: where one of them was taken by default, what
/// most users of such a model run instead.
void suit_experts(TomlValue& document, const workloads::TransformerShape& model);

/// Of [plan]: throws InputError on "fsdp", a framework's word for zero3 or zero2.
void know_data_of_frameworks(TableReader& plan);

/// What [software] says, `written` its table or null. Where it names no version, and the one that
/// is taken came with an NCCL older than the GPU, the framework's newest.
workloads::Software software_for(TableReader& table, const TomlValue* written,
                                 const topology::GpuSpec& gpu, const Catalogue& catalogue);

/// The NCCL of the framework's version, or the first that knows the GPU where that one is newer.
std::string default_nccl(const workloads::Software& software, const topology::GpuSpec& gpu);

}  // namespace stepcast::sim
