// Why a step is longer than it should be, as milliseconds of the step that add up to the gap.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::validate {

enum class CauseKind : std::uint8_t {
  slow_rank,         // one GPU computes slower than its peers
  slow_link,         // transfers take longer, all or those of some groups
  wrong_protocol,    // all transfers do, as under another setting of NCCL
  launch_blocking,   // the host waits for each kernel
  host_bound,        // gaps between launches
  host_pause,        // single long gaps: garbage collection, another process
  data_loader,       // the gap between steps
  stalls,            // steps of a log that are longer now and then: checkpoints, evaluation
  drift,             // steps of a log that grow
  recompute,         // the forward pass runs again
  stage_imbalance,   // some pipeline stages have more kernels than others
  expert_imbalance,  // ranks with more tokens
  unfused,           // more small kernels than expected
  slow_attention,    // an attention kernel that is not the expected one
  fp32_products,     // products in fp32 or TF32
  slow_kernels,      // kernels of one kind take longer on every rank
  clocks,            // all that computes takes longer on every rank, memory-bound kernels do not
  copies,            // copies that nobody expects
  allocator,         // the allocator frees and asks again
  waiting,           // for peers that are late for a reason that the traces do not show
  not_explained,
};
inline constexpr int num_causes = 21;

enum class Surety : std::uint8_t { sure, likely, possible };

struct Cause {
  CauseKind kind{};
  double seconds = 0;  // of the step
  std::string evidence{};
  Surety surety = Surety::likely;
  std::vector<std::int64_t> ranks{};  // where; empty: all
  std::string how{};                  // what to set, where it is more than the kind says
};

/// What a kind is called in JSON, in a sentence, and what is done about it.
struct CauseWords {
  CauseKind kind;
  std::string_view key;    // "slow_rank"
  std::string_view title;  // "a slow GPU"
  std::string_view what_to_try, how_to_check;
};
const CauseWords& words_of(CauseKind);
std::string_view word_of(Surety);
/// "12.3 ms"
std::string milliseconds(double seconds);

/// The setting in the user's own framework; empty where there is none.
std::string setting_of(CauseKind kind, std::string_view framework);

}  // namespace stepcast::validate
