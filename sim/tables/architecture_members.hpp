// The members of an architecture, each with its key, as a scenario has its own (members.hpp).
#pragma once

#include "sim/files/key.hpp"
#include "sim/files/names.hpp"
#include "topology/architecture.hpp"

namespace stepcast::sim {

template <class Spec, class Visitor>
void visit_architecture(Spec& a, Visitor&& visit) {
  const auto share = [](const char* name, const char* what) {
    return Key{name, what}.within(0.001, 2.0);
  };
  visit.may({"host", "a core of this machine: nothing of it is guessed"}, a.host);
  visit.may({"collectives", "who moves bytes between GPUs"}, a.collectives,
            collective_library_names);
  visit.needs({"nccl", "whose rows of NCCL's tables and whose fitted constants hold"}, a.nccl,
              nccl_generation_names);
  visit.may({"link", "one link between GPUs as built, one direction"}, a.link);
  visit.may({"planned_link", "what the library takes it for"}, a.planned_link);
  visit.may(Key{"channels", "of the library, whose buffers take memory"}.within(1, 64), a.channels);
  visit.may(Key{"tile_rows", "outputs of a product's thread block"}.within(8, 1'024), a.tile_rows);
  visit.may(Key{"tile_columns", "the same, the other way"}.within(8, 1'024), a.tile_columns);
  visit.needs(share("product_reach", "of the tensor peak, large products nobody measured"),
              a.product_reach);
  visit.may({"bf16", "tensor cores multiply it"}, a.bf16);
  visit.may({"fp8", "tensor cores multiply it"}, a.fp8);
  visit.may({"microscales", "mxfp8 and nvfp4: scales of 16 or 32 elements"}, a.microscales);
  visit.may({"transposed_fp8", "8-bit operands are read along either dimension"}, a.transposed_fp8);
  visit.may(Key{"misaligned", "longer by: rows that are no multiple of 16 bytes"}.within(1, 10),
            a.misaligned);
  visit.may(share("idle_data", "rate on random data over that on zeros, of long products"),
            a.idle_data);
  visit.needs(share("attention_reach", "of the tensor peak, attention nobody measured"),
              a.attention_reach);
  visit.may(share("sparse_reach", "the same, to keys that an index chose"), a.sparse_reach);
  visit.may(share("recurrence_reach", "the same, linear attention and state spaces"),
            a.recurrence_reach);
  visit.may({"flash2_by_sms", "FlashAttention-2 at Hopper's rate by the SM"}, a.flash2_by_sms);
  visit.may(share("embedding", "of the memory bandwidth, a gather of rows"), a.embedding);
  visit.may({"one_memory", "norms measured on one GPU hold for its siblings"}, a.one_memory);
  visit.may({"one_connection", "user buffers need CUDA_DEVICE_MAX_CONNECTIONS = 1"},
            a.one_connection);
  visit.may(
      Key{"flops_per_cycle", "dense, 16 bits, of an SM; 0: no clock follows"}.within(1, 1'000'000),
      a.flops_per_cycle);
  visit.may(Key{"power_exponent", "of the clock, which power follows"}.within(1, 4),
            a.power_exponent);
  visit.may(share("sustained", "of the short-run rate, what a step holds at the power limit"),
            a.sustained);
  visit.may({"sustained_sms", "of the part that was read on; 0: of every part alike"},
            a.sustained_sms);
  visit.may({"sustained_tdp", "of that part"}, a.sustained_tdp);
  visit.may({"sustained_peak", "of that part, 16 bits"}, a.sustained_peak);
  visit.may(share("sustained_exponent", "of the watts of an SM, which its rate follows"),
            a.sustained_exponent);
  visit.may(share("highest_clock", "of its parts, over that part's"), a.highest_clock);
  visit.may(Key{"sustained_gpus", "the slowest of how many it was read on"}.within(1, 100'000),
            a.sustained_gpus);
}

}  // namespace stepcast::sim
