// What each form of optimizer reads and writes of a parameter, pass by pass.
#pragma once

#include <array>
#include <cstdint>

namespace stepcast::workloads {

/// Bytes of an element where gradient, weight and states have 4; where weights and gradients have
/// 2 and there are no masters, half of them unless `narrow` says otherwise.
struct OptimizerPass {
  const char* name;
  std::int64_t bytes;
  int lists;  // tensor lists read or written
  std::int64_t narrow = 0;

  std::int64_t bytes_of(bool masters) const {
    return masters ? bytes : narrow > 0 ? narrow : bytes / 2;
  }
};

/// foreach AdamW in fp32 (torch _multi_tensor_adamw), 80 bytes a parameter in 8 passes.
inline constexpr std::array<OptimizerPass, 8> foreach_adamw{{
    {"adamw.decay", 8, 1},       // p *= 1 - lr wd
    {"adamw.moment1", 12, 2},    // m = lerp(m, g): read m, g, write m
    {"adamw.moment2", 8, 1},     // v *= beta2
    {"adamw.square", 12, 2},     // v += (1 - beta2) g g: read v, g, write v
    {"adamw.root", 8, 2},        // sqrt(v): read, write a new one
    {"adamw.correct", 8, 1},     // divided by the bias correction
    {"adamw.epsilon", 8, 1},     // + eps
    {"adamw.parameter", 16, 3},  // p += step m / root: read p, m, root, write p
}};

/// AdamW as a loop over the tensors, each pass a kernel (Composer's DecoupledAdamW, from memory):
/// 88 bytes a parameter.
inline constexpr std::array<OptimizerPass, 9> per_tensor_adamw{{
    {"adamw.decay", 8, 1},
    {"adamw.moment1.scale", 8, 1},
    {"adamw.moment1", 12, 2},
    {"adamw.moment2.scale", 8, 1},
    {"adamw.moment2", 12, 2},
    {"adamw.root", 8, 2},
    {"adamw.correct", 8, 2},
    {"adamw.epsilon", 8, 1},
    {"adamw.parameter", 16, 3},
}};

/// LAMB in apex (csrc/multi_tensor_lamb.cu, from memory): norm of every parameter tensor; the
/// update from p, g, m, v, written over g, with m and v; norm of every update; the parameter from
/// both (12, and 2 for its copy in 16 bits). 48 or 50 bytes a parameter; the norm of all gradients
/// comes before (Tail::clip()).
inline constexpr std::array<OptimizerPass, 3> fused_lamb{{
    {"lamb.parameter_norm", 4, 1},
    {"lamb.update", 28, 4},
    {"lamb.update_norm", 4, 1},
}};

/// bitsandbytes, a kernel for each tensor: read p, g and two bytes of moments, write p and the two
/// (csrc/kernels.cu kOptimizerStatic8bit2StateBlockwise; recalled, 2026).
inline constexpr OptimizerPass adam_8bit_pass{"adam_8bit", 16, 4, 10};

/// transformers' Adafactor, tensor by tensor (optimization.py at 005edacb, read 2026-11), without a
/// first moment and without decay: 84 bytes a parameter. 16-bit gradients and weights are widened
/// first, and weights written back.
inline constexpr std::array<OptimizerPass, 13> adafactor_passes{{
    {"adafactor.rms", 4, 1, 16},      // of the weight; narrow: widened, with the gradient
    {"adafactor.square", 8, 2, 8},    // g g, a new one
    {"adafactor.floor", 8, 2, 8},     // + eps, a new one
    {"adafactor.rows", 4, 1, 4},      // its mean of each row
    {"adafactor.columns", 4, 1, 4},   // and column
    {"adafactor.outer", 4, 1, 4},     // of what they come to: the update
    {"adafactor.update", 12, 2, 12},  // times the gradient
    {"adafactor.update_rms", 4, 1, 4},
    {"adafactor.clip", 8, 1, 8},
    {"adafactor.rate", 8, 1, 8},
    {"adafactor.negate", 8, 2, 8},
    {"adafactor.parameter", 12, 2, 12},
    {"adafactor.back", 0, 2, 6},  // narrow: the weight in 16 bits
}};

/// torch's SGD with momentum: one kernel (read p, g, m, write p, m), or three foreach passes
/// (_multi_tensor_sgd: m *= mu; m += g; p -= lr m).
inline constexpr OptimizerPass fused_sgd{"sgd.fused", 20, 3};
inline constexpr std::array<OptimizerPass, 3> foreach_sgd{{
    {"sgd.momentum", 8, 1},
    {"sgd.gradient", 12, 2},
    {"sgd.parameter", 12, 2},
}};

}  // namespace stepcast::workloads
