// What the prose of a pasted text says of the run: the GPU, how many of them, the model. Names and
// counts alone, each with the place where it stands; knows no file's format.
#pragma once

#include <string>
#include <string_view>

#include "sim/inputs/facts.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::validate {

/// Adds what the facts lack: "8 x H100 80GB", "GPU type: NVIDIA L40S", "2 nodes", "Qwen2.5-7B". A
/// sentence on each is a note.
void add_said(std::string_view prose, const std::string& path, const sim::Catalogue& catalogue,
              sim::Facts& facts);

}  // namespace stepcast::validate
