// Where a vendor's tuner leaves one protocol of NCCL for the next: not a time, but two times that
// are equal at the bytes it names.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/files/csv.hpp"
#include "sim/network/constants.hpp"
#include "sim/network/nccl/choice.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::calibrate {

/// One point: Ring with `from` below `bytes`, with `to` above.
struct Crossover {
  std::int64_t line = 0;  // of its file
  topology::NodeSpec node;
  sim::GroupShape shape;
  workloads::CollectiveKind kind{};
  sim::Protocol from{}, to{};
  Bytes bytes{};
  bool scored = false;  // false: the source says no more than a bound
  std::string source, note;
};

/// Whether a file's columns are those of crossovers.
bool holds_crossovers(const sim::CsvFile& file);
/// Columns: platform (a node of the catalogue), gpu, kind, from_protocol, to_protocol, ranks,
/// gpus_per_node, bytes, source, how_obtained, scored (yes or no). Throws InputError (file:line).
std::vector<Crossover> read_crossovers(const sim::CsvFile& file, const sim::Catalogue& catalogue);

/// A crossover with what does not depend on constants.
class CrossoverCase {
 public:
  CrossoverCase(const Crossover& crossover, std::shared_ptr<const sim::NcclTuning> tuning);

  /// Time with `from` over time with `to` at `bytes`.
  double ratio(Bytes bytes, const sim::NetworkConstants& constants) const;
  /// Where the model's two times are equal, the first size at which `from` is the slower; none up
  /// to 64 GiB.
  std::optional<Bytes> predicted(const sim::NetworkConstants& constants) const;
  const Crossover& crossover() const { return crossover_; }

 private:
  Duration time(sim::Protocol protocol, Bytes bytes, const sim::NetworkConstants& constants) const;

  Crossover crossover_;
  std::shared_ptr<const sim::NcclTuning> tuning_;
  sim::NcclMachine machine_;
};

}  // namespace stepcast::calibrate
