#include "calibrate/import/nccl_debug_log.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "calibrate/import/nccl_log_words.hpp"
#include "calibrate/rows/numbers.hpp"
#include "sim/files/nccl_names.hpp"

namespace stepcast::calibrate {
namespace {

std::vector<std::string> cells_of(std::string_view text) {
  std::vector<std::string> cells;
  while (!text.empty()) {
    const std::string_view cell = text.substr(0, text.find('|'));
    text.remove_prefix(std::min(text.size(), cell.size() + 1));
    const std::size_t first = cell.find_first_not_of(' ');
    if (first != std::string_view::npos)
      cells.emplace_back(cell.substr(first, cell.find_last_not_of(' ') + 1 - first));
  }
  return cells;
}

/// The whole number behind a word: of "nRanks 16" 16.
std::optional<std::int64_t> number_behind(const std::vector<std::string>& words,
                                          std::string_view name) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i] == name) return number_in<std::int64_t>(words[i + 1]);
  return std::nullopt;
}

struct Shape {
  std::int64_t ranks = 0, nodes = 0;  // 0: not said
  friend auto operator<=>(const Shape&, const Shape&) = default;
};

class DebugReader {
 public:
  DebugReader(const TextFile& file, const ClusterFacts& facts, Ignored& ignored)
      : file_(file), facts_(facts), ignored_(ignored) {}

  NcclDebugTables read() {
    for (const TextLine& line : file_.lines)
      if (const auto version = nccl_in_text(line.text); version && nccl_.empty()) nccl_ = *version;
    for (const TextLine& line : file_.lines) read(line);
    finish_table();
    if (out_.tuning.empty() && out_.choices.empty())
      file_.fail(1, "holds no tuning table and no choice of NCCL",
                 "log with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,TUNING");
    return std::move(out_);
  }

 private:
  void read(const TextLine& line) {
    constexpr std::string_view mark = "NCCL INFO ";
    std::string_view text = line.text;
    std::string process;
    if (const std::size_t at = text.find(mark); at != std::string_view::npos) {
      process = process_in(text.substr(0, at));
      text.remove_prefix(at + mark.size());
    }
    if (text.find("Bytes -> Algo") != std::string_view::npos)
      choice(line.number, text, process);
    else if (text.find("Bytes -> Kernel") != std::string_view::npos)
      ignored_.add("a call served by a symmetric-memory kernel", line.number);
    else if (text.find('|') != std::string_view::npos)
      table_line(line.number, text, process);
    else
      communicator(words_of(text), process);
  }

  void communicator(const std::vector<std::string>& words, const std::string& process) {
    if (std::find(words.begin(), words.end(), "comm") == words.end()) return;
    auto ranks = number_behind(words, "nRanks");
    if (!ranks) ranks = number_behind(words, "nranks");
    if (!ranks || *ranks < 1) return;
    const auto nodes = number_behind(words, "nNodes");
    Shape& last = shape_of_[process];
    if (!nodes && last.ranks == *ranks) return;  // the line at the end of the same set-up
    last = {.ranks = *ranks, .nodes = nodes.value_or(0)};
    shapes_of_[process].insert(last);
  }

  /// What the log says of the communicator, completed by the options; InputError when something is
  /// open. None when the options ask for another one.
  std::optional<Shape> shape(std::int64_t line, const std::string& process) const {
    Shape shape;
    if (const auto found = shape_of_.find(process); found != shape_of_.end()) shape = found->second;
    Unsaid unsaid;
    unsaid.add(facts_.gpu.empty(), "which GPU it was", "--gpu NAME");
    unsaid.add(nccl_.empty() && facts_.nccl.empty(), "which NCCL it was", "--nccl 2.20.5");
    unsaid.add(shape.ranks == 0 && !facts_.ranks, "how many ranks", "--ranks N");
    unsaid.add(shape.nodes == 0 && !facts_.nodes, "how many nodes", "--nodes N");
    if (unsaid.several()) file_.fail(line, "the log does not say " + unsaid.what(), unsaid.hint());
    const auto settle = [&](std::int64_t& found, const std::optional<std::int64_t>& said,
                            const char* what, const char* option) {
      if (found != 0) return !said || *said == found;
      if (!said)
        file_.fail(line, std::string("the log does not say how many ") + what,
                   std::string("give ") + option + " N, or log with NCCL_DEBUG_SUBSYS=INIT,TUNING");
      found = *said;
      return true;
    };
    if (!settle(shape.ranks, facts_.ranks, "ranks", "--ranks")) return std::nullopt;
    if (!settle(shape.nodes, facts_.nodes, "nodes", "--nodes")) return std::nullopt;
    if (shape.nodes < 1 || shape.ranks % shape.nodes != 0)
      file_.fail(
          line, std::to_string(shape.ranks) + " ranks on " + std::to_string(shape.nodes) + " nodes",
          "only equal numbers on every node are understood");
    return shape;
  }

  std::string gpu(std::int64_t line) const {
    if (facts_.gpu.empty())
      file_.fail(line, "the log does not say which GPU it was", "name it with --gpu");
    return facts_.gpu;
  }

  std::string nccl(std::int64_t line) const {
    if (!nccl_.empty() && !facts_.nccl.empty() && nccl_ != facts_.nccl)
      file_.fail(line, "the log is of NCCL " + nccl_ + ", --nccl says " + facts_.nccl);
    if (nccl_.empty() && facts_.nccl.empty())
      file_.fail(line, "the log does not say which NCCL it was", "give --nccl 2.20.5");
    return nccl_.empty() ? facts_.nccl : nccl_;
  }

  sim::RowSource source(const char* what) const { return {what, file_.name(), "high"}; }

  // --- the table ---

  struct Column {
    std::string algorithm, protocol;
  };

  void table_line(std::int64_t line, std::string_view text, const std::string& process) {
    const auto cells = cells_of(text);
    if (cells.empty()) return;
    if (cells[0] == "Latency/AlgBw") {
      finish_table();
      for (std::size_t i = 1; i < cells.size(); ++i) {
        const std::size_t slash = cells[i].find('/');
        columns_.push_back({algorithm(line, cells[i].substr(0, slash)),
                            protocol(line, slash == std::string::npos
                                               ? std::string()
                                               : words_joined(cells[i].substr(slash + 1)))});
      }
      begin_table(line);
    } else if (cells[0] == "Algorithm") {
      finish_table();
      for (std::size_t i = 1; i < cells.size(); ++i)
        algorithms_.push_back(algorithm(line, cells[i]));
      if (algorithms_.empty()) file_.fail(line, "a table without algorithms", "was the log cut?");
    } else if (cells[0] == "Protocol" && !algorithms_.empty()) {
      if (cells.size() != algorithms_.size() * sim::num_protocols + 1)
        file_.fail(line, "not three protocols for each algorithm", "was the log cut?");
      for (std::size_t i = 1; i < cells.size(); ++i)
        columns_.push_back({algorithms_[(i - 1) / sim::num_protocols], protocol(line, cells[i])});
      algorithms_.clear();
      begin_table(line);
    } else if (const auto collective = collective_named(cells[0]);
               collective && !columns_.empty()) {
      table_row(line, *collective, cells, process);
    }
  }

  static std::string words_joined(std::string_view text) {
    std::string out;
    for (const std::string& word : words_of(text)) out += word;
    return out;
  }

  void begin_table(std::int64_t line) {
    header_line_ = line;
    rows_in_table_ = 0;
  }

  void finish_table() {
    if (!algorithms_.empty() || (!columns_.empty() && rows_in_table_ == 0))
      file_.fail(std::max<std::int64_t>(header_line_, 1), "a tuning table without rows",
                 "was the log cut?");
    columns_.clear();
  }

  std::string algorithm(std::int64_t line, const std::string& word) const {
    const auto name = algorithm_named(words_joined(word));
    if (!name) file_.fail(line, "unknown algorithm '" + word + "'", "is this a log of NCCL?");
    return *name;
  }

  std::string protocol(std::int64_t line, const std::string& word) const {
    const auto name = protocol_named(word);
    if (!name) file_.fail(line, "unknown protocol '" + word + "'", "is this a log of NCCL?");
    return *name;
  }

  void table_row(std::int64_t line, const std::string& collective,
                 const std::vector<std::string>& cells, const std::string& process) {
    if (cells.size() != columns_.size() + 1)
      file_.fail(line,
                 std::to_string(cells.size() - 1) + " cells under a header of " +
                     std::to_string(columns_.size()),
                 "was the log cut?");
    ++rows_in_table_;
    const auto group = shape(line, process);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& cell = cells[i + 1];
      const std::size_t slash = std::min(cell.find('/'), cell.size());
      const auto latency = number_in<double>(words_joined(cell.substr(0, slash)));
      const auto bandwidth =
          number_in<double>(words_joined(cell.substr(std::min(slash + 1, cell.size()))));
      // A second of latency and a petabyte per second are beyond all hardware.
      if (!latency || !bandwidth || *latency < 0 || *bandwidth < 0 || *latency > 1e6 ||
          *bandwidth > 1e6)
        file_.fail(line, "'" + cell + "' is not latency/bandwidth", "was the line cut?");
      if (*bandwidth == 0) continue;
      if (!group) {
        ignored_.add("a table of another communicator than --ranks and --nodes say", line);
        return;
      }
      keep({.gpu = gpu(line),
            .nccl = nccl(line),
            .collective = collective,
            .algorithm = columns_[i].algorithm,
            .protocol = columns_[i].protocol,
            .ranks = group->ranks,
            .nodes = group->nodes,
            .latency = to_duration(*latency * 1e-6),
            .bandwidth = BytesPerSecond(*bandwidth * 1e9),
            .source = source("NCCL tuning table")},
           line);
    }
  }

  void keep(sim::NcclTuningRow row, std::int64_t line) {
    const auto [known, fresh] = seen_rows_.emplace(
        std::tuple(row.collective, row.algorithm, row.protocol, row.ranks, row.nodes), row);
    if (fresh)
      out_.tuning.push_back(std::move(row));
    else if (known->second != row)
      ignored_.add("a figure of a second communicator of the same ranks and nodes", line);
  }

  // --- the choices ---

  /// "[AllReduce: ]N Bytes -> Algo A proto P [time T] [channel{Lo..Hi}={a..b}]"
  void choice(std::int64_t line, std::string_view text, const std::string& process) {
    const auto words = words_of(text);
    const auto arrow = std::find(words.begin(), words.end(), "->") - words.begin();
    const auto at = static_cast<std::size_t>(arrow);
    const auto bytes = at >= 2 && at < words.size() ? number_in<std::int64_t>(words[at - 2])
                                                    : std::optional<std::int64_t>();
    if (!bytes || *bytes < 0 || at + 4 >= words.size() || words[at + 3] != "proto")
      file_.fail(line, "is no choice of NCCL", "expected 'N Bytes -> Algo A proto P ...'");
    sim::NcclChoiceRow row;
    row.bytes = Bytes(*bytes);
    row.algorithm = algorithm(line, words[at + 2]);
    row.protocol = protocol(line, words[at + 4]);
    details(line, words, at + 5, row);
    std::optional<std::string> collective;
    if (at >= 3) collective = collective_named(words[at - 3]);
    if (!collective && !facts_.collective.empty()) collective = facts_.collective;
    if (!collective || *bytes == 0)
      return ignored_.add(*bytes == 0 ? "a call of no bytes"
                                      : "a call whose collective is not said: give --collective",
                          line);
    const auto shapes = shapes_of_.find(process);
    if (shapes != shapes_of_.end() && shapes->second.size() > 1 && !(facts_.ranks && facts_.nodes))
      return ignored_.add("a call in a process with several communicators: which is not said",
                          line);
    const auto group = shape(line, process);
    if (!group) return ignored_.add("a call of another communicator", line);
    row.collective = *collective;
    row.ranks = group->ranks;
    row.nodes = group->nodes;
    row.gpu = gpu(line);
    row.nccl = nccl(line);
    row.source = source("NCCL's choice");
    keep(std::move(row), line);
  }

  void details(std::int64_t line, const std::vector<std::string>& words, std::size_t from,
               sim::NcclChoiceRow& row) const {
    for (std::size_t i = from; i < words.size(); ++i) {
      if (words[i] == "time" && i + 1 < words.size()) {
        const auto time = number_in<double>(words[++i]);
        if (!time || *time < 0 || *time > 1e12)
          file_.fail(line, "time '" + words[i] + "' is no time");
        row.estimate = to_duration(*time * 1e-6);
      } else if (words[i].starts_with("channel{")) {
        const auto channels = channels_in(words[i]);
        if (!channels)
          file_.fail(line, "'" + words[i] + "' is no range of channels", "was the line cut?");
        row.channels = *channels;
      }
    }
  }

  void keep(sim::NcclChoiceRow row, std::int64_t line) {
    const auto [known, fresh] =
        seen_choices_.emplace(std::tuple(row.collective, row.bytes, row.ranks, row.nodes),
                              std::pair(row.algorithm, row.protocol));
    const bool same = known->second == std::pair(row.algorithm, row.protocol);
    if (fresh)
      out_.choices.push_back(std::move(row));
    else if (!same)
      ignored_.add("a call that was served otherwise before", line);
  }

  const TextFile& file_;
  const ClusterFacts& facts_;
  Ignored& ignored_;
  NcclDebugTables out_;
  std::string nccl_;
  std::map<std::string, Shape> shape_of_;             // the last one of a process
  std::map<std::string, std::set<Shape>> shapes_of_;  // all of them
  std::vector<std::string> algorithms_;               // of a header whose protocols are to come
  std::vector<Column> columns_;
  std::int64_t header_line_ = 0;
  int rows_in_table_ = 0;
  std::map<std::tuple<std::string, std::string, std::string, std::int64_t, std::int64_t>,
           sim::NcclTuningRow>
      seen_rows_;
  std::map<std::tuple<std::string, Bytes, std::int64_t, std::int64_t>,
           std::pair<std::string, std::string>>
      seen_choices_;
};

}  // namespace

bool is_nccl_debug_log(const TextFile& file) {
  return std::any_of(file.lines.begin(), file.lines.end(), [](const TextLine& line) {
    return line.text.find("Bytes -> Algo") != std::string::npos ||
           line.text.find("Latency/AlgBw |") != std::string::npos ||
           (line.text.find(" Algorithm ") != std::string::npos &&
            line.text.find('|') != std::string::npos);
  });
}

NcclDebugTables parse_nccl_debug_log(const TextFile& file, const ClusterFacts& facts,
                                     Ignored& ignored) {
  return DebugReader(file, facts, ignored).read();
}

}  // namespace stepcast::calibrate
