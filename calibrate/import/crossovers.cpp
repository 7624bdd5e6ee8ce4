#include "calibrate/import/crossovers.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/check.hpp"
#include "sim/files/names.hpp"
#include "sim/files/numbers.hpp"
#include "sim/network/measured_time.hpp"
#include "sim/network/nccl/time.hpp"

namespace stepcast::calibrate {
namespace {

const std::array<std::string, 11> columns{
    "platform",      "gpu",   "kind",   "from_protocol", "to_protocol", "ranks",
    "gpus_per_node", "bytes", "source", "how_obtained",  "scored"};

constexpr std::int64_t most_ranks = 1 << 20, most_bytes = std::int64_t{1} << 40;

std::int64_t count_in(const sim::CsvLine& line, const char* column, std::int64_t most) {
  const auto value = sim::number_in<std::int64_t>(line.stated(column));
  if (!value || *value <= 0 || *value > most)
    line.fail(std::string(column) + " \"" + line.text(column) +
              "\" is not a positive whole number");
  return *value;
}

sim::Protocol protocol_in(const sim::CsvLine& line, const char* column) {
  for (const auto& word : sim::protocol_words)
    if (word.name == line.stated(column)) return word.value;
  line.fail(std::string(column) + " \"" + line.text(column) + "\"", "ll, ll128, simple");
}

}  // namespace

bool holds_crossovers(const sim::CsvFile& file) {
  return std::ranges::find(file.header, "from_protocol") != file.header.end();
}

std::vector<Crossover> read_crossovers(const sim::CsvFile& file, const sim::Catalogue& catalogue) {
  const sim::CsvColumns known = sim::columns_of(file, columns);
  std::vector<Crossover> out;
  for (const sim::CsvRow& row : file.rows) {
    const sim::CsvLine line(file, known, row);
    const std::string where = file.path + ":" + std::to_string(row.line);
    Crossover one;
    one.line = row.line;
    one.node = catalogue.node(sim::toml_text(line.stated("platform"), where));
    const std::int64_t ranks = count_in(line, "ranks", most_ranks),
                       each = count_in(line, "gpus_per_node", most_ranks);
    if (ranks % each != 0 || each > one.node.gpus || ranks < 2)
      line.fail(line.text("ranks") + " ranks, " + line.text("gpus_per_node") + " a node");
    one.shape = {ranks, ranks / each, each, 1};
    sim::CollectiveRow named;
    named.collective = line.stated("kind");
    const auto kind = sim::collective_kind(named);
    if (!kind || !sim::choice_index(*kind)) line.fail("kind \"" + line.text("kind") + "\"");
    one.kind = *kind;
    one.from = protocol_in(line, "from_protocol");
    one.to = protocol_in(line, "to_protocol");
    one.bytes = Bytes(count_in(line, "bytes", most_bytes));
    one.scored = line.text("scored") != "no";
    one.source = line.stated("source");
    one.note = line.text("how_obtained");
    out.push_back(std::move(one));
  }
  if (out.empty()) throw InputError(file.path + ":1", "holds no row");
  return out;
}

CrossoverCase::CrossoverCase(const Crossover& crossover,
                             std::shared_ptr<const sim::NcclTuning> tuning)
    : crossover_(crossover),
      tuning_(std::move(tuning)),
      machine_(sim::nccl_machine(crossover.node, crossover.shape)) {}

Duration CrossoverCase::time(sim::Protocol protocol, Bytes bytes,
                             const sim::NetworkConstants& constants) const {
  const sim::NcclOption option{.algorithm = sim::Algorithm::ring, .protocol = protocol};
  return sim::nccl_time(*tuning_, machine_, crossover_.kind, bytes, option, constants).total();
}

double CrossoverCase::ratio(Bytes bytes, const sim::NetworkConstants& constants) const {
  return seconds(time(crossover_.from, bytes, constants)) /
         seconds(time(crossover_.to, bytes, constants));
}

std::optional<Bytes> CrossoverCase::predicted(const sim::NetworkConstants& constants) const {
  constexpr std::int64_t smallest = 1 << 10, largest = std::int64_t{1} << 36;
  for (std::int64_t high = 2 * smallest; high <= largest; high *= 2) {
    if (ratio(Bytes(high), constants) < 1) continue;
    std::int64_t low = high / 2;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (ratio(Bytes(middle), constants) < 1 ? low : high) = middle;
    }
    return Bytes(high);
  }
  return std::nullopt;
}

}  // namespace stepcast::calibrate
