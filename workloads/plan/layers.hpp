// The layers of a model as a list: how each lets tokens see each other, and what MLP follows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::workloads {

/// How a layer lets tokens see each other.
enum class Mixer : std::uint8_t {
  full,         // attention to all keys before, or to those that the layer's index chooses
  window,       // attention to the last `window` keys
  reuse,        // attention to the keys that an index before it chose
  delta,        // the gated delta rule, a linear attention (arXiv 2412.06464)
  state_space,  // Mamba-2 (SSD, arXiv 2405.21060)
  both,         // full and state_space side by side, their outputs added
  none
};
enum class Mlp : std::uint8_t { dense, experts, none };

inline bool attends(Mixer mixer) {
  return mixer == Mixer::full || mixer == Mixer::window || mixer == Mixer::reuse ||
         mixer == Mixer::both;
}
inline bool has_state_space(Mixer mixer) {
  return mixer == Mixer::state_space || mixer == Mixer::both;
}

struct LayerForm {
  Mixer mixer = Mixer::full;
  Mlp mlp = Mlp::dense;
  std::int64_t ffn = 0;  // of a dense MLP; 0: the model's ffn_hidden
  bool experts() const { return mlp == Mlp::experts; }
  friend bool operator==(const LayerForm&, const LayerForm&) = default;
};

/// The first layers in order; what follows repeats them. Empty: the model says it by other keys
/// (window_every, dense_layers, expert_every).
using LayerPattern = std::vector<LayerForm>;

/// A word a layer, its mixer's letter and its MLP's: "G- G- G- *-", "M E M E *". A dense MLP of a
/// width of its own has it behind the letter: "*-14336". One word without blanks is Megatron's form
/// (--hybrid-layer-pattern), where each letter is a layer: "MEMEM*E".
inline constexpr std::string_view pattern_letters =
    "* attention, W window, R attention by an index before, G gated delta rule, M state space, "
    "H attention beside state space; - dense MLP, E experts";

/// False: `text` is no pattern; `wrong` is the word that is none.
bool read_pattern(std::string_view text, LayerPattern& out, std::string& wrong);
/// The latter form alone, in which "M-" is two layers.
bool read_letters(std::string_view text, LayerPattern& out, std::string& wrong);
std::string to_text(const LayerPattern&);
/// The shortest pattern that repeats to the same layers.
LayerPattern shortest(const LayerPattern&);

}  // namespace stepcast::workloads
