// The rates of a transfer from its start to its end, as the fluid layer had them: derived from a
// log, for the transfers that somebody asks about. Which links hold it back, and whose transfers
// are on them meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "engine/path/step_log.hpp"

namespace stepcast::engine {

/// A transfer under way: turn `turn` of a communicator.
struct Flowing {
  std::uint32_t communicator = 0;
  std::int64_t turn = 0;
  BytesPerSecond rate{}, cap{};
};

/// A stretch of time in which no transfer near starts or ends.
struct RatePiece {
  Time from, to;
  std::vector<Flowing> flows;  // the transfer itself first, then those that links tie to it
};

/// What holds a flow of a piece below its cap: the load of its communicator on the full link.
struct Hold {
  std::uint32_t link = 0;
  double weight = 0.0;              // of the flows that freeze there with it
  std::vector<std::size_t> frozen;  // flows of the piece that do, itself included
  std::vector<std::size_t> others;  // that use the link, and are held back before
};

class SharedRates {
 public:
  /// `log` is borrowed.
  explicit SharedRates(const StepLog& log);

  /// Pieces with the same rates next to each other are one.
  std::vector<RatePiece> pieces(std::uint32_t communicator, std::int64_t turn) const;
  /// Nothing for a flow at its cap.
  std::vector<Hold> hold(const RatePiece& piece, std::size_t flow) const;
  double weight_on(std::uint32_t communicator, std::uint32_t link) const;

  struct Span {
    Time from, to;
  };
  Span span(std::uint32_t communicator, std::int64_t turn) const;

 private:
  const std::vector<Span>& spans(std::uint32_t communicator) const;
  std::int64_t first_turn(std::uint32_t communicator) const;
  Flowing flowing(std::uint32_t communicator, std::int64_t turn) const;
  void add_flows(RatePiece& piece, std::uint32_t communicator) const;
  static void share(const System& system, RatePiece& piece);

  const StepLog& log_;
  std::vector<std::uint32_t> component_;             // by communicator
  std::vector<std::vector<std::uint32_t>> members_;  // by component: communicators
  mutable std::map<std::uint32_t, std::vector<Span>> spans_;
};

}  // namespace stepcast::engine
