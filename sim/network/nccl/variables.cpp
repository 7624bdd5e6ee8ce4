#include "sim/network/nccl/variables.hpp"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <utility>

#include "engine/check.hpp"
#include "sim/files/collective_words.hpp"
#include "sim/files/toml_table.hpp"

namespace stepcast::sim {
namespace {

using workloads::CollectiveKind;

constexpr auto algorithm_spellings = nccl_names_of<num_algorithms>(algorithm_words);
constexpr auto protocol_spellings = nccl_names_of<num_protocols>(protocol_words);
constexpr auto function_words = nccl_names_of<num_choices>(collective_words);
// nccl.h writes the policies as numbers; the variable takes both.
constexpr Names<CtaPolicy, 6> policy_words{{
    {"DEFAULT", CtaPolicy::usual},
    {"EFFICIENCY", CtaPolicy::efficiency},
    {"ZERO", CtaPolicy::zero},
    {"0", CtaPolicy::usual},
    {"1", CtaPolicy::efficiency},
    {"2", CtaPolicy::zero},
}};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  while (true) {
    const std::size_t to = std::min(text.find(separator, from), text.size());
    parts.push_back(text.substr(from, to - from));
    if (to == text.size()) return parts;
    from = to + 1;
  }
}

template <class Words>
auto meaning_of(const NcclVariable& variable, const std::string& word, const Words& words) {
  std::vector<std::string> known;
  for (const auto& [spelling, meaning] : words) {
    if (lower(word) == lower(spelling)) return meaning;
    known.emplace_back(spelling);
  }
  throw InputError(variable.where, variable.name + " knows no '" + word + "'",
                   suggestion(word, known));
}

/// "Ring,Tree", or "^NVLS": all others.
template <class Words>
auto set_of(const NcclVariable& variable, std::string list, const Words& words) {
  std::bitset<std::tuple_size_v<Words>> set;
  const bool all_others = list.starts_with('^');
  if (all_others) list.erase(0, 1);
  for (const std::string& word : split(list, ','))
    set.set(static_cast<std::size_t>(meaning_of(variable, word, words)));
  return all_others ? ~set : set;
}

/// "ring;allreduce:tree,ring": a list for all functions, which only the first may be, then those
/// of single functions.
template <class Words, class Sets>
void read_lists(const NcclVariable& variable, const Words& words, Sets& sets, bool& by_function) {
  bool first = true;
  for (const std::string& part : split(variable.value, ';')) {
    const std::size_t colon = part.find(':');
    if (colon == std::string::npos) {
      if (!first)
        throw InputError(variable.where, variable.name + ": '" + part + "' names no function",
                         "only the first list may be for all: \"ring;allreduce:tree\"");
      sets.fill(set_of(variable, part, words));
    } else {
      const auto kind = meaning_of(variable, part.substr(0, colon), function_words);
      sets[*choice_index(kind)] = set_of(variable, part.substr(colon + 1), words);
      by_function = true;
    }
    first = false;
  }
}

std::int64_t count_of(const NcclVariable& variable) {
  const std::string& text = variable.value;
  const bool digits = !text.empty() && text.size() <= 4 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  const std::int64_t count = digits ? std::stoll(text) : 0;
  if (count < 1 || count > 64)
    throw InputError(variable.where, variable.name + " = '" + text + "' is no number of channels",
                     "NCCL has 1 to 64");
  return count;
}

bool switch_of(const NcclVariable& variable) {
  if (variable.value != "0" && variable.value != "1")
    throw InputError(variable.where, variable.name + " is 0 or 1, not '" + variable.value + "'");
  return variable.value == "1";
}

/// 0 and 1; 2 lets NCCL decide, as it does by default.
std::optional<bool> tristate_of(const NcclVariable& variable) {
  if (variable.value == "2") return std::nullopt;
  return switch_of(variable);
}

bool flag_of(const NcclVariable& variable) {
  if (variable.value != "true" && variable.value != "false")
    throw InputError(variable.where,
                     variable.name + " is true or false, not '" + variable.value + "'");
  return variable.value == "true";
}

void read_algorithms(const NcclVariable& v, NcclOverrides& o) {
  read_lists(v, algorithm_spellings, o.algorithms, o.by_function);
  o.where = v.where;
}

void read_protocols(const NcclVariable& v, NcclOverrides& o) {
  read_lists(v, protocol_spellings, o.protocols, o.by_function);
  o.where = v.where;
}

using Reader = std::function<void(const NcclVariable&, NcclOverrides&)>;

const std::map<std::string, Reader>& readers() {
  const auto at_least = [](std::int64_t NcclOverrides::*limit) {
    return [limit](const NcclVariable& v, NcclOverrides& o) {
      o.*limit = std::max(o.*limit, count_of(v));
    };
  };
  const auto at_most = [](std::int64_t NcclOverrides::*limit) {
    return [limit](const NcclVariable& v, NcclOverrides& o) {
      o.*limit = std::min(o.*limit, count_of(v));
    };
  };
  static const std::map<std::string, Reader> all = {
      {"NCCL_ALGO", read_algorithms},
      {"NCCL_PROTO", read_protocols},
      {"NCCL_MIN_NCHANNELS", at_least(&NcclOverrides::least_ctas)},
      {"NCCL_MAX_NCHANNELS", at_most(&NcclOverrides::most_ctas)},
      {"NCCL_MIN_CTAS", at_least(&NcclOverrides::least_ctas)},
      {"NCCL_MAX_CTAS", at_most(&NcclOverrides::most_ctas)},
      {"NCCL_MIN_P2P_NCHANNELS", at_least(&NcclOverrides::least_p2p_ctas)},
      {"NCCL_MAX_P2P_NCHANNELS", at_most(&NcclOverrides::most_p2p_ctas)},
      {"NCCL_CTA_POLICY",
       [](const NcclVariable& v, NcclOverrides& o) {
         o.cta_policy = meaning_of(v, v.value, policy_words);
       }},
      {"NCCL_COLLNET_ENABLE",
       [](const NcclVariable& v, NcclOverrides& o) { o.collnet = switch_of(v); }},
      {"NCCL_NVLS_ENABLE",
       [](const NcclVariable& v, NcclOverrides& o) { o.nvls = tristate_of(v); }},
      {"NCCL_PAT_ENABLE", [](const NcclVariable& v, NcclOverrides& o) { o.pat = tristate_of(v); }},
      {"NCCL_P2P_DISABLE",
       [](const NcclVariable& v, NcclOverrides& o) { o.peer_to_peer = !switch_of(v); }},
      {"registered_buffers",
       [](const NcclVariable& v, NcclOverrides& o) { o.registered_buffers = flag_of(v); }},
  };
  return all;
}

/// Variables of NCCL that the model has no term for.
constexpr std::array without_effect{"NCCL_CROSS_NIC",
                                    "NCCL_IB_HCA",
                                    "NCCL_IB_DISABLE",
                                    "NCCL_IB_TC",
                                    "NCCL_IB_TIMEOUT",
                                    "NCCL_IB_RETRY_CNT",
                                    "NCCL_IB_GID_INDEX",
                                    "NCCL_IB_SL",
                                    "NCCL_SOCKET_IFNAME",
                                    "NCCL_NET",
                                    "NCCL_NET_GDR_LEVEL",
                                    "NCCL_P2P_LEVEL",
                                    "NCCL_SHM_DISABLE",
                                    "NCCL_BUFFSIZE",
                                    "NCCL_NTHREADS",
                                    "NCCL_DEBUG",
                                    "NCCL_DEBUG_SUBSYS",
                                    "NCCL_TOPO_FILE",
                                    "NCCL_GRAPH_FILE",
                                    "NCCL_PXN_DISABLE",
                                    "NCCL_LAUNCH_MODE",
                                    "NCCL_CUMEM_ENABLE",
                                    "NCCL_MNNVL_ENABLE",
                                    "NCCL_LL128_NTHREADS",
                                    "NCCL_NVB_DISABLE",
                                    "NCCL_DMABUF_ENABLE",
                                    "NCCL_GRAPH_REGISTER",
                                    "NCCL_LOCAL_REGISTER",
                                    "NCCL_P2P_LL_THRESHOLD",
                                    "NCCL_IGNORE_CPU_AFFINITY",
                                    "NCCL_IB_QPS_PER_CONNECTION"};

}  // namespace

NcclName nccl_name(const std::string& name) {
  if (readers().contains(name)) return NcclName::read;
  return std::ranges::find(without_effect, name) != without_effect.end() ? NcclName::without_effect
                                                                         : NcclName::unknown;
}

namespace {

const Reader& reader_of(const NcclVariable& variable) {
  const NcclName known_as = nccl_name(variable.name);
  if (known_as == NcclName::read) return readers().at(variable.name);
  if (known_as == NcclName::without_effect)
    throw InputError(variable.where, variable.name + " changes nothing in the model",
                     "leave it out");
  std::vector<std::string> known;
  for (const auto& [name, reader] : readers()) known.push_back(name);
  throw InputError(variable.where, "unknown variable '" + variable.name + "'",
                   suggestion(variable.name, known));
}

}  // namespace

NcclOverrides nccl_overrides(const std::vector<NcclVariable>& variables) {
  NcclOverrides overrides;
  for (const NcclVariable& variable : variables) {
    reader_of(variable)(variable, overrides);
    if (overrides.least_ctas > overrides.most_ctas ||
        overrides.least_p2p_ctas > overrides.most_p2p_ctas)
      throw InputError(variable.where,
                       variable.name + " = " + variable.value + " contradicts the other limit",
                       "the least is not above the most");
  }
  return overrides;
}

void check_nccl_variables(const std::vector<NcclVariable>& variables, const NcclTuning& tuning) {
  for (const NcclVariable& variable : variables) {
    const bool lists = variable.name == "NCCL_ALGO" || variable.name == "NCCL_PROTO";
    if (lists && !tuning.lists_by_function &&
        variable.value.find_first_of(":;") != std::string::npos)
      throw InputError(variable.where, variable.name + " by function: NCCL knows that since 2.24",
                       "one list for all, \"Ring,Tree\", or a newer version");
  }
}

}  // namespace stepcast::sim
