#include "sim/import/published_csv.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <map>
#include <sstream>
#include <vector>

#include "engine/check.hpp"
#include "sim/files/numbers.hpp"
#include "sim/files/suggest.hpp"
#include "sim/import/calibration_csv.hpp"
#include "sim/network/measured_time.hpp"
#include "sim/network/model.hpp"
#include "workloads/plan/layer_shape.hpp"

namespace stepcast::sim {
namespace {

constexpr const char* needed_columns =
    "gpu kind dtype value unit source confidence url_or_repo_path";
// Those that have the name of a column of the table say the same as there, where it has no unit.
constexpr const char* known_columns =
    "gpu kind dtype value unit source confidence url_or_repo_path shape_or_bytes shape ranks nodes "
    "gpus_per_node fabric inter_node_gbps_per_node nccl timing processes implementation data "
    "min_bytes_moved implied_GB_per_s pass width cache choice accumulate algorithm protocol spread "
    "samples throttled error kernel collective kernel_alone kernel_beside collective_alone "
    "collective_beside device driver runtime gemm_library collective_library clocks date command "
    "groups call limit value_dim window how_obtained";

std::vector<std::string> words_of(const char* text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

CsvColumns columns_of(const CsvFile& file) {
  CsvColumns columns = columns_of(file, words_of(known_columns));
  const std::string where = file.path + ":1";
  std::vector<std::string> missing;
  for (const std::string& name : words_of(needed_columns))
    if (!columns.contains(name)) missing.push_back(name);
  const bool shape = columns.contains("shape"), or_bytes = columns.contains("shape_or_bytes");
  if (!shape && !or_bytes) missing.emplace_back("shape_or_bytes");
  if (!missing.empty()) throw InputError(where, "lacks the " + named_columns(missing));
  if (shape && or_bytes)
    throw InputError(where, "has both columns \"shape\" and \"shape_or_bytes\"");
  return columns;
}

// A table that does not say whose kernel it timed is kept, and matches no implementation.
constexpr const char* unstated = "unstated";

/// One line with the conversions that the kinds share.
class Line : public CsvLine {
 public:
  using CsvLine::CsvLine;

  const std::string& kind() const { return text("kind"); }
  const std::string& shape() const {
    return stated(text("shape").empty() ? "shape_or_bytes" : "shape");
  }
  /// "m=4096;n=512" as a map; keys must be exactly among `keys`, in any order.
  std::map<std::string, std::string> shape(const std::vector<std::string>& keys) const;

  double positive(std::string_view column) const;
  std::int64_t count(std::string_view name, std::string_view text) const;
  Duration microseconds(std::string_view column = "value") const {
    return to_duration(positive(column) * 1e-6);
  }
  FlopsPerSecond flop_rate() const {
    need_unit("TFLOP/s");
    return FlopsPerSecond(positive("value") * 1e12);
  }
  void need_unit(const std::string& unit) const {
    if (stated("unit") != unit)
      fail("unit \"" + text("unit") + "\" of a " + kind(), "write " + unit);
  }
};

double Line::positive(std::string_view column) const {
  const std::string& cell = stated(column);
  const auto value = number_in<double>(cell);
  if (!value || *value <= 0)
    fail(std::string(column) + " \"" + cell + "\" is not a positive number");
  return *value;
}

std::int64_t Line::count(std::string_view name, std::string_view text) const {
  const auto value = number_in<std::int64_t>(text);
  if (!value || *value <= 0 || *value > most_counted)
    fail(std::string(name) + " \"" + std::string(text) + "\" is not a positive whole number");
  return *value;
}

std::map<std::string, std::string> Line::shape(const std::vector<std::string>& keys) const {
  std::map<std::string, std::string> values;
  std::string_view rest = shape();
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) fail("shape \"" + shape() + "\" is not key=value;...");
    const std::string name(part.substr(0, equals));
    if (std::find(keys.begin(), keys.end(), name) == keys.end())
      fail("unknown key \"" + name + "\" in shape \"" + shape() + "\"");
    if (!values.emplace(name, part.substr(equals + 1)).second)
      fail("key \"" + name + "\" twice in shape \"" + shape() + "\"");
  }
  return values;
}

// What a kind says in its shape, value and unit. The other cells are in the row already.

void read_gemm(const Line& line, GemmRow& row) {
  auto shape = line.shape({"m", "n", "k", "opA", "opB", "data"});
  line.stated("dtype");
  // What the inputs held stands in a column of its own, or in the shape.
  if (shape.contains("data")) row.data = shape.at("data");
  shape.erase("data");
  const bool layout = shape.contains("opA") && shape.contains("opB");
  if (shape.size() != (layout ? 5 : 3) || !shape.contains("m") || !shape.contains("n") ||
      !shape.contains("k"))
    line.fail("shape \"" + line.shape() + "\" is not m=;n=;k= (and opA=;opB=)");
  row.m = line.count("m", shape.at("m"));
  row.n = line.count("n", shape.at("n"));
  row.k = line.count("k", shape.at("k"));
  if (layout) row.layout = shape.at("opA") + shape.at("opB");
  if ((row.groups > 0) != (line.kind() == "grouped_gemm"))
    line.fail("groups \"" + line.text("groups") + "\" of a " + line.kind(),
              "grouped_gemm, and no other kind, says how many products there are");
  row.rate = line.flop_rate();
}

void read_attention(const Line& line, AttentionRow& row) {
  static const std::map<std::string, std::string> masks = {
      {"1", "causal"}, {"0", "full"}, {"unknown", "not_stated"}};
  const auto shape = line.shape({"b", "h", "hq", "hkv", "s", "d", "causal"});
  const auto number = [&](const char* name) {
    const auto found = shape.find(name);
    return found == shape.end() ? 0 : line.count(name, found->second);
  };
  const bool grouped = shape.contains("hq");
  if (grouped != shape.contains("hkv") || (grouped && shape.contains("h")) ||
      !shape.contains("s") || !shape.contains("d") || !shape.contains("causal"))
    line.fail("shape \"" + line.shape() + "\" is not b=;h= (or hq=;hkv=);s=;d=;causal=");
  const auto mask = masks.find(shape.at("causal"));
  if (mask == masks.end()) line.fail("causal is 0, 1 or unknown");
  line.stated("dtype");
  row.pass = line.kind() == "attention_fwd"   ? "forward"
             : line.kind() == "attention_bwd" ? "backward"
                                              : "forward_backward";
  if (row.implementation.empty()) row.implementation = unstated;
  row.batch = number("b");
  row.heads = grouped ? number("hq") : number("h");
  row.kv_heads = grouped ? number("hkv") : row.heads;
  row.sequence = number("s");
  row.head_dim = number("d");
  row.mask = mask->second;
  row.rate = line.flop_rate();
}

/// Kernels in attention's place: the time, as FLOPs by our count (workloads/plan/layer_shape.hpp).
/// hq, hkv and d are a delta rule's heads of values and of keys and their width; of a state space
/// its heads, groups and state.
void read_recurrence(const Line& line, AttentionRow& row) {
  const auto shape = line.shape({"b", "hq", "hkv", "s", "d", "causal"});
  for (const char* key : {"b", "hq", "hkv", "s", "d"})
    if (!shape.contains(key)) line.fail("shape \"" + line.shape() + "\" is not b=;hq=;hkv=;s=;d=");
  line.need_unit("us");
  line.stated("dtype");
  const auto number = [&](const char* name) { return line.count(name, shape.at(name)); };
  const bool backward = line.kind() == "linear_attention_bwd";
  row.pass = backward ? "backward" : "forward";
  row.batch = number("b");
  row.heads = number("hq");
  row.kv_heads = number("hkv");
  row.sequence = number("s");
  row.head_dim = number("d");
  row.mask = "causal";
  const bool states = line.stated("implementation").ends_with("_state_space");
  const std::int64_t forward =
      states ? workloads::state_space_flops({row.heads, row.value_dim, row.kv_heads, row.head_dim})
             : workloads::delta_flops({row.kv_heads, row.heads, row.head_dim, row.value_dim});
  const double more = !backward ? 1.0
                      : states  ? workloads::state_space_backward_flops
                                : workloads::delta_backward_flops;
  const auto heads = static_cast<double>(row.batch * row.heads * row.sequence);
  row.rate =
      FlopsPerSecond(more * heads * static_cast<double>(forward) / (line.positive("value") * 1e-6));
}

void read_elementwise(const Line& line, ElementwiseRow& row) {
  const auto shape = line.shape({"tokens", "model", "tp", "op"});
  const bool columns = row.width > 0;  // the whole shape but for what is done
  const bool op = shape.contains("op");
  if (shape.size() != (columns ? 1U + op : 3U) || !shape.contains("tokens"))
    line.fail("shape \"" + line.shape() + "\" is not tokens=;model=;tp= (or tokens= and width)");
  line.need_unit("us");
  line.stated("dtype");
  row.kind = line.kind();
  if (row.implementation.empty()) row.implementation = unstated;
  row.tokens = line.count("tokens", shape.at("tokens"));
  if (op) row.shape = "op=" + shape.at("op");
  if (!columns) row.shape = "model=" + shape.at("model") + ";tp=" + shape.at("tp");
  row.bytes = Bytes(line.count("min_bytes_moved", line.stated("min_bytes_moved")));
  row.duration = line.microseconds();
}

void read_collective(const Line& line, CollectiveRow& row) {
  const bool peak = line.shape().starts_with("max");  // "max", "max(1G-4G)"
  row.collective = line.kind();
  if (!peak) row.bytes = Bytes(line.count("bytes", line.shape()));
  if (!line.text("inter_node_gbps_per_node").empty())
    row.node_bandwidth = BytesPerSecond(line.positive("inter_node_gbps_per_node") * 1e9 / 8);
  if (!peak && row.ranks < 2) line.fail("a collective of " + line.text("ranks") + " ranks");
  const double moved =
      peak ? 0.0
           : static_cast<double>(row.bytes.value) * bus_factor(*collective_kind(row), row.ranks);
  if (line.stated("unit") == "GB/s busbw") {
    row.busbw = BytesPerSecond(line.positive("value") * 1e9);
    if (!peak) row.duration = to_duration(moved / row.busbw.value);
  } else if (line.text("unit") == "us" && !peak) {
    row.duration = line.microseconds();
    row.busbw = BytesPerSecond(moved / seconds(row.duration));
  } else {
    line.fail("unit \"" + line.text("unit") + "\" of a collective", "write us or GB/s busbw");
  }
}

void read_copy(const Line& line, CopyRow& row) {
  line.need_unit("GB/s");
  row.what = line.shape();
  const auto says = [&](const char* word) { return row.what.find(word) != std::string::npos; };
  row.kind = "other";
  if (says("(read+write)") || says("(read and write)"))
    row.kind = "memory";  // bytes counted in both directions, as kernels' HBM traffic is
  else if (says("p2p NVLink unidirectional"))
    row.kind = "nvlink";
  else if (says("host-to-device") || says("device-to-host") || says("host_to_device") ||
           says("device_to_host"))
    row.kind = "pcie";
  row.gpus = line.count("ranks", line.stated("ranks"));
  row.rate = BytesPerSecond(line.positive("value") * 1e9);
  const std::string& bytes = line.text("min_bytes_moved");
  if (!bytes.empty() && bytes != "0") row.bytes = Bytes(line.count("min_bytes_moved", bytes));
}

void read_launch(const Line& line, LaunchRow& row) {
  line.need_unit("us");
  row.what = line.shape();
  row.duration = line.microseconds();
}

void read_overlap(const Line& line, OverlapRow& row) {
  line.need_unit("us");
  line.stated("kernel");
  line.stated("collective");
  row.bytes = Bytes(line.count("bytes", line.shape()));
  row.kernel_alone = line.microseconds("kernel_alone");
  row.kernel_beside = line.microseconds("kernel_beside");
  row.collective_alone = line.microseconds("collective_alone");
  row.collective_beside = line.microseconds("collective_beside");
}

void read_power(const Line& line, PowerRow& row) {
  line.need_unit("W");
  row.load = line.shape();
  row.power = Watts(line.positive("value"));
}

/// The kinds of a family, and what reads its newest row.
struct Kinds {
  const char* family;
  const char* kinds;
  void (*read)(const Line&, CalibrationTable&);
};
using Table = CalibrationTable;
constexpr std::array<Kinds, 9> all_kinds{{
    {"gemm", "gemm grouped_gemm", [](const Line& l, Table& t) { read_gemm(l, t.gemm.back()); }},
    {"attention", "attention_fwd attention_bwd attention_fwd_bwd",
     [](const Line& l, Table& t) { read_attention(l, t.attention.back()); }},
    {"attention", "linear_attention_fwd linear_attention_bwd",
     [](const Line& l, Table& t) { read_recurrence(l, t.attention.back()); }},
    {"elementwise",
     "rmsnorm rope silu_mul residual_add embedding layernorm gelu cross_entropy cast adamw "
     "grad_norm copy_in copy_out quantize",
     [](const Line& l, Table& t) { read_elementwise(l, t.elementwise.back()); }},
    {"collectives", "allreduce allgather reducescatter alltoall broadcast reduce sendrecv",
     [](const Line& l, Table& t) { read_collective(l, t.collectives.back()); }},
    {"copies", "copy", [](const Line& l, Table& t) { read_copy(l, t.copies.back()); }},
    {"launches", "launch", [](const Line& l, Table& t) { read_launch(l, t.launches.back()); }},
    {"overlaps", "overlap", [](const Line& l, Table& t) { read_overlap(l, t.overlaps.back()); }},
    {"powers", "power", [](const Line& l, Table& t) { read_power(l, t.powers.back()); }},
}};

const Kinds& kinds_with(const Line& line) {
  std::vector<std::string> known;
  for (const Kinds& kinds : all_kinds)
    for (const std::string& kind : words_of(kinds.kinds)) {
      if (kind == line.kind()) return kinds;
      known.push_back(kind);
    }
  line.fail("unknown kind \"" + line.kind() + "\"", suggestion(line.kind(), known));
}

/// The table's word for a fabric as publications name it: "NVLink", "NVL72", "Slingshot 11",
/// "CX7 IB", "PCIe, no NVLink". Any other stays as it is, and is refused.
std::string fabric_word(const std::string& text) {
  std::string lower = text;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  constexpr std::array<std::pair<const char*, const char*>, 9> marks{
      {{"slingshot", "slingshot"},
       {"omni-path", "omni-path"},
       {"infiniband", "infiniband"},
       {" ib", "infiniband"},
       {"roce", "roce"},
       {"efa", "efa"},
       {"pcie", "pcie"},
       {"nvlink-bridge", "nvlink-bridge"},
       {"nvl", "nvlink"}}};
  for (const auto& [mark, word] : marks)
    if (lower.find(mark) != std::string::npos) return word;
  return text;
}

/// Cells whose column is one of the table's, by its name there; kinds have words of their own.
void fill_row(const Line& line, const Family& family, CalibrationTable& table) {
  const std::size_t row = family.size(table) - 1;
  for (const Column& column : family.columns) {
    const bool fabric = column.name == std::string_view("fabric");
    const std::string text = fabric ? fabric_word(line.text(column.name)) : line.text(column.name);
    const std::string_view unit = column.unit;
    // "multi": more than the source counts.
    const bool stated = !text.empty() && (column.stored == Stored::text || text != "multi");
    if (stated && column.name != std::string_view("kind") && (unit == "text" || unit == "1"))
      column.set(table, row, parse_cell(line, column, text));
  }
}

}  // namespace

CalibrationTable import_published_csv(const CsvFile& file) {
  const CsvColumns columns = columns_of(file);
  CalibrationTable table;
  for (const CsvRow& cells : file.rows) {
    const Line line(file, columns, cells);
    const Kinds& kinds = kinds_with(line);
    const auto family = std::find_if(
        families().begin(), families().end(),
        [&](const Family& candidate) { return candidate.name == std::string_view(kinds.family); });
    const std::size_t row = family->size(table);
    family->resize(table, row + 1);
    fill_row(line, *family, table);
    kinds.read(line, table);
    finish_row(line, *family, table, "url_or_repo_path");
  }
  return table;
}

}  // namespace stepcast::sim
