#include "calibrate/import/topology_matrix.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "calibrate/rows/numbers.hpp"

namespace stepcast::calibrate {
namespace {

constexpr std::array<std::string_view, 7> relations = {"X",   "PIX",  "PXB", "PHB",
                                                       "SYS", "NODE", "SOC"};  // SOC: before R384

bool is_gpu(const std::string& name) {
  return name.starts_with("GPU") && number_in<std::int64_t>(name.substr(3)).has_value();
}

/// The header begins with GPU0; a row does too, but its second word is a relation.
bool is_header(const std::vector<std::string>& words) {
  if (words.empty() || words[0] != "GPU0") return false;
  return words.size() == 1 || is_gpu(words[1]) || words[1] == "CPU" ||
         words[1].starts_with("NIC") || words[1].starts_with("mlx");
}

struct Row {
  std::int64_t line = 0;
  std::vector<std::string> cells;
};

class MatrixReader {
 public:
  MatrixReader(const TextFile& file, Ignored& ignored) : file_(file), ignored_(ignored) {
    out_.path = file.path;
    out_.format = "nvidia-smi topo -m";
  }

  NodeTopology read() {
    for (const TextLine& line : file_.lines) read(line);
    if (names_.empty())
      file_.fail(1, "is no table of nvidia-smi topo -m", "its header begins with GPU0");
    for (const std::string& name : names_)
      if (!rows_.contains(name))
        file_.fail(header_line_, "the row of " + name + " is missing", "was the text cut?");
    check_symmetry();
    fill();
    return std::move(out_);
  }

 private:
  void read(const TextLine& line) {
    const auto words = words_of(line.text);
    if (words.empty()) return;
    if (names_.empty()) {
      if (is_header(words))
        header(line.number, words);
      else
        ignored_.add("a line before the table", line.number);
    } else if (std::find(names_.begin(), names_.end(), words[0]) != names_.end()) {
      row(line.number, words);
    } else if (words[0].starts_with("NIC") && words[0].ends_with(":") && words.size() == 2) {
      legend_[words[0].substr(0, words[0].size() - 1)] = words[1];  // "NIC0: mlx5_0"
    } else if (!rows_.empty() && rows_.size() < names_.size()) {
      file_.fail(line.number, "no row of the table", "did a terminal wrap its lines?");
    }
  }

  void header(std::int64_t line, const std::vector<std::string>& words) {
    header_line_ = line;
    for (const std::string& word : words) {
      if (word == "CPU") break;  // "CPU Affinity  NUMA Affinity  GPU NUMA ID"
      if (std::find(names_.begin(), names_.end(), word) != names_.end())
        file_.fail(line, word + " twice in the header");
      names_.push_back(word);
    }
    if (names_.size() > 1024) file_.fail(line, "more than 1024 columns");
  }

  void row(std::int64_t line, const std::vector<std::string>& words) {
    if (rows_.contains(words[0])) {
      if (rows_.size() == names_.size()) return ignored_.add("a second table", line);
      file_.fail(line, "a second row of " + words[0]);
    }
    if (words.size() < names_.size() + 1)
      file_.fail(line,
                 std::to_string(words.size() - 1) + " cells under a header of " +
                     std::to_string(names_.size()),
                 "was the text cut, or did a terminal wrap its lines?");
    Row row{line,
            {words.begin() + 1, words.begin() + 1 + static_cast<std::ptrdiff_t>(names_.size())}};
    for (const std::string& cell : row.cells) {
      const bool nvlink = cell.starts_with("NV") && nvlinks(cell) > 0;
      if (!nvlink && std::find(relations.begin(), relations.end(), cell) == relations.end())
        file_.fail(line, "unknown cell '" + cell + "'",
                   "X, NV#, PIX, PXB, PHB, NODE, SYS are known");
    }
    rows_[words[0]] = std::move(row);
  }

  static std::int64_t nvlinks(const std::string& cell) {
    if (!cell.starts_with("NV")) return 0;
    const auto count = number_in<std::int64_t>(cell.substr(2));
    return count && *count > 0 && *count <= 64 ? *count : 0;
  }

  const std::string& cell(std::size_t i, std::size_t j) const {
    return rows_.at(names_[i]).cells[j];
  }

  void check_symmetry() const {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const std::int64_t line = rows_.at(names_[i]).line;
      if (cell(i, i) != "X") file_.fail(line, names_[i] + " is not X to itself");
      for (std::size_t j = 0; j < i; ++j) {
        if (cell(i, j) == "X") file_.fail(line, names_[i] + " is X to " + names_[j]);
        if (cell(i, j) != cell(j, i))
          file_.fail(
              line,
              names_[i] + " to " + names_[j] + " is " + cell(i, j) + ", back it is " + cell(j, i),
              "was the text edited?");
      }
    }
  }

  void fill() {
    std::vector<std::size_t> gpus, nics;
    for (std::size_t i = 0; i < names_.size(); ++i) (is_gpu(names_[i]) ? gpus : nics).push_back(i);
    out_.gpus = static_cast<std::int64_t>(gpus.size());
    bool any = false;
    for (const std::size_t i : gpus) {
      out_.nvlinks.emplace_back();
      for (const std::size_t j : gpus) {
        out_.nvlinks.back().push_back(i == j ? 0 : nvlinks(cell(i, j)));
        any = any || out_.nvlinks.back().back() > 0;
      }
    }
    if (!any) out_.nvlinks.clear();
    for (const std::size_t n : nics) {
      const auto known = legend_.find(names_[n]);
      const bool near = std::any_of(gpus.begin(), gpus.end(),
                                    [&](std::size_t g) { return behind_one_switch(n, g); });
      const std::string& name = known == legend_.end() ? names_[n] : known->second;
      out_.nics.push_back({.name = name,
                           .line = rows_.at(names_[n]).line,
                           .speed = {},
                           .network = network_of_nic(name, "", ""),
                           .near_gpu = near});
    }
    count_switches(gpus);
  }

  bool behind_one_switch(std::size_t i, std::size_t j) const {
    return cell(i, j) == "PIX" || cell(i, j) == "PXB";
  }

  /// PCIe switches are groups of devices that reach each other over PIX or PXB. NVLink hides how
  /// two GPUs meet over PCIe, but a NIC beside both shows it; without NICs nothing does.
  void count_switches(const std::vector<std::size_t>& gpus) {
    std::vector<std::size_t> group(names_.size());
    std::iota(group.begin(), group.end(), std::size_t{0});
    for (std::size_t i = 0; i < names_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (behind_one_switch(i, j) && group[i] != group[j])
          std::replace(group.begin(), group.end(), std::max(group[i], group[j]),
                       std::min(group[i], group[j]));
    std::map<std::size_t, std::int64_t> gpus_in, devices_in;
    for (const std::size_t g : group) ++devices_in[g];
    for (const std::size_t g : gpus) ++gpus_in[group[g]];
    const bool seen = std::all_of(gpus.begin(), gpus.end(),
                                  [&](std::size_t g) { return devices_in[group[g]] > 1; });
    if (seen) out_.pcie_switches = static_cast<std::int64_t>(gpus_in.size());
  }

  const TextFile& file_;
  Ignored& ignored_;
  NodeTopology out_;
  std::int64_t header_line_ = 0;
  std::vector<std::string> names_;
  std::map<std::string, Row> rows_;
  std::map<std::string, std::string> legend_;
};

}  // namespace

bool is_topology_matrix(const TextFile& file) {
  return std::any_of(file.lines.begin(), file.lines.end(),
                     [](const TextLine& line) { return is_header(words_of(line.text)); });
}

NodeTopology parse_topology_matrix(const TextFile& file, Ignored& ignored) {
  return MatrixReader(file, ignored).read();
}

}  // namespace stepcast::calibrate
