// Layouts of pipeline stages as Megatron writes them (--pipeline-model-parallel-layout): items of
// the model in its order, E embedding, t a transformer layer, m a module that predicts further
// tokens (MTP), L head and loss, with | between the parts; x*3 and (tt|)*29 repeat. Commas and
// blanks are for the eye.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::sim {

struct StageLayout {
  std::vector<std::int64_t> layers;  // of each part
  std::vector<std::int64_t> mtp;     // modules of each part
};

/// Throws InputError at `where` with the column of what is wrong; the embedding must begin the
/// first part and the loss end the last.
StageLayout parse_stage_layout(std::string_view text, const std::string& where);

}  // namespace stepcast::sim
