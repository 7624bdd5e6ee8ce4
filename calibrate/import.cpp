#include "calibrate/import.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "calibrate/measurement.hpp"
#include "calibrate/nccl_tests.hpp"
#include "engine/check.hpp"
#include "sim/suggest.hpp"

namespace stepcast::calibrate {
namespace {

/// A table that does not say whose kernel it timed is kept, and matches no implementation.
std::string implementation_of(const Measurement& row) {
  const std::string& text = row.text("implementation");
  return text.empty() ? "unstated" : text;
}

using sim::CalibrationTable;

FlopsPerSecond flop_rate(const Measurement& row) {
  if (row.stated("unit") != "TFLOP/s")
    row.fail("unit \"" + row.text("unit") + "\" of a " + row.text("kind"), "write TFLOP/s");
  return FlopsPerSecond(row.positive("value") * 1e12);
}

bool flag(const Measurement& row, const char* column) {
  const std::string& text = row.text(column);
  if (text != "" && text != "0" && text != "1") row.fail(std::string(column) + " is 0 or 1");
  return text == "1";
}

std::string cache_of(const Measurement& row) {
  const std::string& text = row.text("cache");
  if (text != "" && text != "cold" && text != "hot") row.fail("cache is cold or hot");
  return text;
}

Duration microseconds(const Measurement& row) { return to_duration(row.positive("value") * 1e-6); }

void import_gemm(const Measurement& row, CalibrationTable& table) {
  auto shape = row.shape({"m", "n", "k", "opA", "opB", "data"});
  // What the inputs held stands in a column of its own, or in the shape.
  const std::string data = shape.contains("data") ? shape.at("data") : row.text("data");
  shape.erase("data");
  const bool layout = shape.contains("opA") && shape.contains("opB");
  if (shape.size() != (layout ? 5 : 3) || !shape.contains("m") || !shape.contains("n") ||
      !shape.contains("k"))
    row.fail("shape \"" + row.shape_text() + "\" is not m=;n=;k= (and opA=;opB=)");
  for (const char* op : {"opA", "opB"})
    if (layout && shape.at(op) != "N" && shape.at(op) != "T") row.fail("opA and opB are N or T");
  if (data != "" && data != "random" && data != "small" && data != "zeros")
    row.fail("data \"" + data + "\" is none of random, small, zeros");
  table.gemm.push_back({.gpu = row.stated("gpu"),
                        .dtype = row.stated("dtype"),
                        .m = row.count_in("m", shape.at("m")),
                        .n = row.count_in("n", shape.at("n")),
                        .k = row.count_in("k", shape.at("k")),
                        .layout = layout ? shape.at("opA") + shape.at("opB") : "",
                        .data = data,
                        .rate = flop_rate(row),
                        .source = row.source(),
                        .accumulate = flag(row, "accumulate"),
                        .choice = row.text("choice"),
                        .cache = cache_of(row),
                        .quality = row.quality()});
}

void import_attention(const Measurement& row, CalibrationTable& table) {
  static const std::map<std::string, std::string> passes = {
      {"attention_fwd", "forward"},
      {"attention_bwd", "backward"},
      {"attention_fwd_bwd", "forward_backward"}};
  static const std::map<std::string, std::string> masks = {
      {"1", "causal"}, {"0", "full"}, {"unknown", "not_stated"}};
  const auto shape = row.shape({"b", "h", "hq", "hkv", "s", "d", "causal"});
  const auto number = [&](const char* name) {
    const auto found = shape.find(name);
    return found == shape.end() ? 0 : row.count_in(name, found->second);
  };
  const bool grouped = shape.contains("hq");
  if (grouped != shape.contains("hkv") || (grouped && shape.contains("h")) ||
      !shape.contains("s") || !shape.contains("d") || !shape.contains("causal"))
    row.fail("shape \"" + row.shape_text() + "\" is not b=;h= (or hq=;hkv=);s=;d=;causal=");
  const auto mask = masks.find(shape.at("causal"));
  if (mask == masks.end()) row.fail("causal is 0, 1 or unknown");
  const std::int64_t heads = grouped ? number("hq") : number("h");
  table.attention.push_back({.gpu = row.stated("gpu"),
                             .dtype = row.stated("dtype"),
                             .pass = passes.at(row.text("kind")),
                             .implementation = implementation_of(row),
                             .batch = number("b"),
                             .heads = heads,
                             .kv_heads = grouped ? number("hkv") : heads,
                             .sequence = number("s"),
                             .head_dim = number("d"),
                             .mask = mask->second,
                             .rate = flop_rate(row),
                             .source = row.source(),
                             .cache = cache_of(row),
                             .quality = row.quality()});
}

void import_elementwise(const Measurement& row, CalibrationTable& table) {
  if (row.stated("unit") != "us")
    row.fail("unit \"" + row.text("unit") + "\" of a " + row.text("kind"), "write us");
  const auto shape = row.shape({"tokens", "model", "tp"});
  const bool columns = row.count_or_zero("width") > 0;  // the whole shape of what we measured
  if (shape.size() != (columns ? 1 : 3) || !shape.contains("tokens"))
    row.fail("shape \"" + row.shape_text() + "\" is not tokens=;model=;tp= (or tokens= and width)");
  table.elementwise.push_back(
      {.gpu = row.stated("gpu"),
       .dtype = row.stated("dtype"),
       .kind = row.text("kind"),
       .implementation = implementation_of(row),
       .tokens = row.count_in("tokens", shape.at("tokens")),
       .shape = columns ? "" : "model=" + shape.at("model") + ";tp=" + shape.at("tp"),
       .bytes = Bytes(row.count("min_bytes_moved")),
       .duration = microseconds(row),
       .source = row.source(),
       .width = row.count_or_zero("width"),
       .pass = row.text("pass"),
       .cache = cache_of(row),
       .quality = row.quality()});
}

void import_collective(const Measurement& row, CalibrationTable& table) {
  const bool peak = row.shape_text().starts_with("max");  // "max", "max(1G-4G)"
  const std::string& link = row.text("inter_node_gbps_per_node");
  sim::CollectiveRow out{.gpu = row.stated("gpu"),
                         .dtype = row.text("dtype"),
                         .collective = row.text("kind"),
                         .ranks = row.count_if_stated("ranks"),
                         .nodes = row.count_if_stated("nodes"),
                         .gpus_per_node = row.count_if_stated("gpus_per_node"),
                         .bytes = Bytes(peak ? 0 : row.count_in("bytes", row.shape_text())),
                         .fabric = row.text("fabric"),
                         .nccl = row.text("nccl"),
                         .timing = row.text("timing"),
                         .processes = row.text("processes"),
                         .source = row.source(),
                         .algorithm = row.text("algorithm"),
                         .protocol = row.text("protocol"),
                         .quality = row.quality()};
  if (!link.empty())
    out.node_bandwidth = BytesPerSecond(row.positive("inter_node_gbps_per_node") * 1e9 / 8);
  if (!peak && out.ranks < 2) row.fail("a collective of " + row.text("ranks") + " ranks");
  const double moved =
      peak ? 0.0 : static_cast<double>(out.bytes.value) * bus_factor(out.collective, out.ranks);
  if (row.stated("unit") == "GB/s busbw") {
    out.busbw = BytesPerSecond(row.positive("value") * 1e9);
    if (!peak) out.duration = to_duration(moved / out.busbw.value);
  } else if (row.text("unit") == "us" && !peak) {
    out.duration = microseconds(row);
    out.busbw = BytesPerSecond(moved / seconds(out.duration));
  } else {
    row.fail("unit \"" + row.text("unit") + "\" of a collective", "write us or GB/s busbw");
  }
  table.collectives.push_back(std::move(out));
}

void import_copy(const Measurement& row, CalibrationTable& table) {
  if (row.stated("unit") != "GB/s")
    row.fail("unit \"" + row.text("unit") + "\" of a copy", "write GB/s");
  const std::string& what = row.shape_text();
  const auto says = [&](const char* word) { return what.find(word) != std::string::npos; };
  std::string kind = "other";
  if (says("(read+write)") || says("(read and write)"))
    kind = "memory";  // bytes counted in both directions, as kernels' HBM traffic is
  else if (says("p2p NVLink unidirectional"))
    kind = "nvlink";
  else if (says("host-to-device") || says("device-to-host") || says("host_to_device") ||
           says("device_to_host"))
    kind = "pcie";
  table.copies.push_back({.gpu = row.stated("gpu"),
                          .kind = kind,
                          .what = what,
                          .gpus = row.count("ranks"),
                          .rate = BytesPerSecond(row.positive("value") * 1e9),
                          .source = row.source(),
                          .bytes = Bytes(row.count_or_zero("min_bytes_moved")),
                          .cache = cache_of(row),
                          .quality = row.quality()});
}

void need_unit(const Measurement& row, const std::string& unit) {
  if (row.stated("unit") != unit)
    row.fail("unit \"" + row.text("unit") + "\" of a " + row.text("kind"), "write " + unit);
}

void import_launch(const Measurement& row, CalibrationTable& table) {
  need_unit(row, "us");
  table.launches.push_back({.gpu = row.stated("gpu"),
                            .what = row.shape_text(),
                            .duration = microseconds(row),
                            .source = row.source(),
                            .quality = row.quality()});
}

void import_overlap(const Measurement& row, CalibrationTable& table) {
  need_unit(row, "us");
  const auto time = [&](const char* column) { return to_duration(row.positive(column) * 1e-6); };
  table.overlaps.push_back({.gpu = row.stated("gpu"),
                            .kernel = row.stated("kernel"),
                            .collective = row.stated("collective"),
                            .ranks = row.count("ranks"),
                            .nodes = row.count("nodes"),
                            .bytes = Bytes(row.count_in("bytes", row.shape_text())),
                            .kernel_alone = time("kernel_alone"),
                            .kernel_beside = time("kernel_beside"),
                            .collective_alone = time("collective_alone"),
                            .collective_beside = time("collective_beside"),
                            .source = row.source(),
                            .quality = row.quality()});
}

void import_power(const Measurement& row, CalibrationTable& table) {
  need_unit(row, "W");
  table.powers.push_back({.gpu = row.stated("gpu"),
                          .load = row.shape_text(),
                          .power = Watts(row.positive("value")),
                          .source = row.source()});
}

using Importer = void (*)(const Measurement&, CalibrationTable&);

const std::map<std::string, Importer>& importers() {
  static const std::map<std::string, Importer> all = {{"gemm", import_gemm},
                                                      {"attention_fwd", import_attention},
                                                      {"attention_bwd", import_attention},
                                                      {"attention_fwd_bwd", import_attention},
                                                      {"rmsnorm", import_elementwise},
                                                      {"rope", import_elementwise},
                                                      {"silu_mul", import_elementwise},
                                                      {"residual_add", import_elementwise},
                                                      {"embedding", import_elementwise},
                                                      {"layernorm", import_elementwise},
                                                      {"gelu", import_elementwise},
                                                      {"cross_entropy", import_elementwise},
                                                      {"cast", import_elementwise},
                                                      {"adamw", import_elementwise},
                                                      {"grad_norm", import_elementwise},
                                                      {"copy_in", import_elementwise},
                                                      {"copy_out", import_elementwise},
                                                      {"launch", import_launch},
                                                      {"overlap", import_overlap},
                                                      {"power", import_power},
                                                      {"allreduce", import_collective},
                                                      {"allgather", import_collective},
                                                      {"reducescatter", import_collective},
                                                      {"alltoall", import_collective},
                                                      {"broadcast", import_collective},
                                                      {"reduce", import_collective},
                                                      {"sendrecv", import_collective},
                                                      {"copy", import_copy}};
  return all;
}

[[noreturn]] void refuse_kind(const Measurement& row) {
  std::vector<std::string> kinds;
  for (const auto& [kind, importer] : importers()) kinds.push_back(kind);
  const auto near = sim::closest(row.text("kind"), kinds);
  row.fail("unknown kind \"" + row.text("kind") + "\"",
           near ? "did you mean \"" + *near + "\"?" : "see calibrate/import.hpp");
}

}  // namespace

CalibrationTable import_csv(const CsvFile& file) {
  const Columns columns(file);
  CalibrationTable table;
  for (const CsvRow& cells : file.rows) {
    const Measurement row(file, columns, cells);
    const auto importer = importers().find(row.text("kind"));
    if (importer == importers().end()) refuse_kind(row);
    importer->second(row, table);
  }
  return table;
}

}  // namespace stepcast::calibrate
