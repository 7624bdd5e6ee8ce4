#include "validate/diagnose/surroundings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "validate/diagnose/node_reports.hpp"
#include "validate/trace/records/file.hpp"
#include "validate/trace/records/numbers.hpp"

namespace stepcast::validate {
namespace {

/// A variable whose value slows a run: `slow` as it is, or any value at all.
struct SlowVariable {
  std::string_view name, slow;  // empty: any
  CauseKind kind;
};
// CUDA C++ Programming Guide (CUDA_LAUNCH_BLOCKING), PyTorch's distributed and autograd pages,
// NCCL 2.27 env.rst (read 2026-11).
constexpr SlowVariable slow_variables[] = {
    {"CUDA_LAUNCH_BLOCKING", "1", CauseKind::launch_blocking},
    {"TORCH_DISTRIBUTED_DEBUG", "DETAIL", CauseKind::launch_blocking},
    {"NCCL_PROTO", "", CauseKind::wrong_protocol},
    {"NCCL_ALGO", "", CauseKind::wrong_protocol},
    {"NCCL_P2P_DISABLE", "1", CauseKind::wrong_protocol},
    {"NCCL_SHM_DISABLE", "1", CauseKind::wrong_protocol},
    {"NCCL_MAX_NCHANNELS", "", CauseKind::wrong_protocol},
    {"NCCL_MAX_CTAS", "", CauseKind::wrong_protocol},
    {"NCCL_IB_DISABLE", "1", CauseKind::slow_link},
    {"NCCL_NET_GDR_LEVEL", "0", CauseKind::slow_link},
    {"NCCL_NET_GDR_LEVEL", "LOC", CauseKind::slow_link},
};

/// A text that a line holds, and what it says where it is all of its value.
struct SlowLine {
  std::string_view part, also;  // both; the second may be empty
  CauseKind kind;
};
// NCCL's init log; nvidia-smi -q (clocks_event_reasons); torchtitan metrics.py; DeepSpeed
// stage3.py; torch.autograd.anomaly_mode; the kernel's log of NVRM.
constexpr SlowLine slow_lines[] = {
    {"NET/Socket : Using", "", CauseKind::slow_link},
    {"NET/IB : No device found", "", CauseKind::slow_link},
    {"GPU Direct RDMA Disabled", "", CauseKind::slow_link},
    {"SW Power Cap", ": Active", CauseKind::clocks},
    {"HW Slowdown", ": Active", CauseKind::clocks},
    {"HW Thermal Slowdown", ": Active", CauseKind::clocks},
    {"HW Power Brake Slowdown", ": Active", CauseKind::clocks},
    {"SW Thermal Slowdown", ": Active", CauseKind::clocks},
    {"CUDA memory allocation retries", "", CauseKind::allocator},
    {"pytorch allocator cache flushes since last step", "", CauseKind::allocator},
    {"Anomaly Detection has been enabled", "", CauseKind::launch_blocking},
    {"NVRM: Xid", "", CauseKind::slow_rank},
};

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view trimmed_line(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// With single blanks.
std::string squeezed(std::string_view text) {
  std::string out;
  for (const char c : trimmed_line(text))
    if (c != ' ' || !out.ends_with(' ')) out += c;
  return out;
}

/// What stands behind "Key   : ", where the line is that.
std::optional<std::string_view> value_of(std::string_view line, std::string_view key) {
  const std::string_view text = trimmed_line(line);
  if (!text.starts_with(key)) return std::nullopt;
  const std::string_view rest = trimmed_line(text.substr(key.size()));
  if (!rest.starts_with(":")) return std::nullopt;
  return trimmed_line(rest.substr(1));
}

class SignReader {
 public:
  SignReader(std::string path, Surroundings& out) : path_(std::move(path)), out_(out) {}

  void line(std::string_view text) {
    ++number_;
    if (dmon_.line(text)) {
      out_.known = true;
      return;
    }
    variables(text);
    for (const auto& [part, also, kind] : slow_lines)
      if (holds(text, part) && (also.empty() || holds(text, also)))
        add({kind, squeezed(text), ""}, std::string(part));
    if (holds(text, "NCCL INFO") || holds(text, "NVIDIA-SMI") || holds(text, "NVSMI LOG"))
      out_.known = true;
    if (holds(text, "via NET/IB") && !holds(text, "GDRDMA"))
      add({CauseKind::slow_link, "InfiniBand without GPUDirect: " + squeezed(text), ""}, "gdr");
    health(text);
  }

  /// When all lines are read: what the second-by-second figures of nvidia-smi come to.
  void finish() {
    for (Sign& sign : dmon_.signs(path_)) out_.signs.push_back(std::move(sign));
  }

 private:
  /// "export NAME=VALUE", "NAME=VALUE command", "NAME set by environment to VALUE."
  void variables(std::string_view text) {
    for (const auto& [name, slow, kind] : slow_variables) {
      const std::size_t at = text.find(name);
      if (at == std::string_view::npos) continue;
      std::string_view rest = text.substr(at + name.size());
      constexpr std::string_view set = " set by environment to ";
      if (rest.starts_with(set))
        rest.remove_prefix(set.size());
      else if (rest.starts_with("=") && !text.substr(0, at).ends_with("_") && !comment(text, at))
        rest.remove_prefix(1);
      else
        continue;
      std::string_view value = rest.substr(0, rest.find_first_of(" \t\r;&|"));
      while (!value.empty() && holds("\"'`.,", value.substr(0, 1))) value.remove_prefix(1);
      while (!value.empty() && holds("\"'`.,", value.substr(value.size() - 1)))
        value.remove_suffix(1);
      if (value.empty() || value.starts_with("$") || (!slow.empty() && value != slow)) continue;
      out_.known = true;
      add({kind, fmt::format("{}={}", name, printable(value)), "", std::string(name),
           std::string(value)},
          std::string(name));
    }
  }

  static bool comment(std::string_view text, std::size_t at) {
    return holds(text.substr(0, at), "#");
  }

  /// Of nvidia-smi -q: the GPU's name, its power limits, the rate of its PCIe link.
  void health(std::string_view text) {
    if (const auto name = value_of(text, "Product Name"); name && out_.gpu.empty()) {
      out_.gpu = *name;
      out_.gpu_source = path_;
      out_.known = true;
    }
    if (const auto limit = value_of(text, "Current Power Limit")) power_ = leading_number(*limit);
    if (const auto most = value_of(text, "Max Power Limit"); most && power_)
      if (const auto watts = leading_number(*most); watts && *power_ < 0.97 * *watts)
        add({CauseKind::clocks, fmt::format("power limit {:.0f} W of {:.0f} W", *power_, *watts),
             ""},
            "power");
    const std::string_view section = trimmed_line(text);
    if (section == "PCIe Generation" || section == "Link Width") link_ = section, most_.reset();
    if (link_.empty()) return;
    if (const auto most = value_of(text, "Max")) most_ = leading_number(*most);
    if (const auto now = value_of(text, "Current"); now && most_)
      if (const auto value = leading_number(*now); value && *value < *most_)
        add({CauseKind::slow_link, fmt::format("{} {:.0f} of {:.0f}", link_, *value, *most_), ""},
            link_);
  }

  /// Once for each `id`; the first place counts.
  void add(Sign sign, const std::string& id) {
    if (!seen_.insert(id).second) return;
    sign.evidence = printable(sign.evidence);
    sign.where = fmt::format("{}:{}", path_, number_);
    out_.known = true;
    out_.signs.push_back(std::move(sign));
  }

  std::string path_;
  Surroundings& out_;
  DmonReader dmon_;
  std::set<std::string> seen_;
  std::int64_t number_ = 0;
  std::optional<double> power_, most_;
  std::string link_;
};

}  // namespace

void read_surroundings(const std::string& path, Surroundings& out) {
  constexpr std::size_t longest_line = 1 << 16;
  TraceFile file(path);
  SignReader reader(path, out);
  std::string line;
  for (int c = file.sbumpc(); c != TraceFile::traits_type::eof(); c = file.sbumpc()) {
    if (c != '\n' && line.size() < longest_line) {
      line += static_cast<char>(c);
      continue;
    }
    reader.line(line);
    line.clear();
  }
  reader.line(line);
  reader.finish();
}

}  // namespace stepcast::validate
