// A collective written out as chunk transfers between its members. Every transfer keeps the rate at
// which the one-variable form moves its bytes (`transfer`), where the links let it; so the two
// forms differ only by hops, by filling pipelines and by links that are shared.
//
//   ring      AllGather, ReduceScatter n-1 steps, AllReduce 2(n-1): in step s rank r sends on what
//             it received in step s-1, S/n a step. Every channel has a ring of its own. A long
//             message makes several such loops, each when a rank has all of the one before.
//   chain     Broadcast from rank 0 and Reduce to rank 0, round the same ring, slot by slot.
//   tree      AllReduce: two binary trees over the nodes for each channel, half of its bytes each
//             (Sanders, Speck, Träff 2009); inside a node a chain; slot by slot up, and down again.
//   nvls      the same for each head, with sums in the NVSwitch instead of chains; alone on one
//   node. pat       n-1 chunks in ceil(log2 n) steps, twice as many in each (Bruck et al. 1997).
//   AlltoAll  shifts: in step s rank r sends S/n to rank r+s; peers inside the node and outside
//             have a queue each. Send/receive: every rank to the next one, as sendrecv_perf does.
#pragma once

#include "sim/network/model.hpp"
#include "sim/network/stepped/layout.hpp"
#include "sim/network/stepped/transfers.hpp"

namespace stepcast::sim {

struct SteppedTerms {
  workloads::CollectiveKind kind{};
  Algorithm algorithm{};
  Protocol protocol{};
  Bytes bytes{};
  Duration transfer{};  // bytes / bandwidth of the one-variable form
  Duration hop_in_node{}, hop_between_nodes{};
  std::int64_t channels = 1;
  std::int64_t hops = 0;  // of the one-variable form: a ring of several loops has several rounds
};

/// Throws InputError for an algorithm that has no stepped form.
TransferGraph expand(const SteppedLayout&, const SteppedTerms&);

/// What a member passes on at once, of one channel. With LL and LL128 a kernel's warps pass on what
/// they read line by line: 256 or 1,920 bytes of a warp at least, one pass of 16 or 20 warps at
/// most. With Simple a slot of 512 KiB, or less, as NCCL cuts it for trees and NVLS (device.h,
/// init.cc, enqueue.cc v2.28.9). Network proxies, which wait for a slot of any protocol, are left
/// out.
double grain_bytes(const SteppedTerms&, const SteppedLayout&);

}  // namespace stepcast::sim
