#include "validate/published/open_choices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "sim/files/names.hpp"
#include "sim/files/text_table.hpp"
#include "validate/rows/row_words.hpp"

namespace stepcast::validate {
namespace {

constexpr double bytes_of_gib = 1024.0 * 1024.0 * 1024.0;

/// Kinds of recompute by what they keep, most first.
std::vector<std::string> kinds_of_recompute() {
  std::vector<std::string> out;
  for (const auto& [name, kind] : sim::recompute_names)
    if (kind != workloads::Recompute::full) out.emplace_back(name);
  out.push_back(sim::word_for(sim::recompute_names, workloads::Recompute::full));
  return out;
}

std::size_t first_where(const std::vector<ChoiceForecast>& forecasts, auto holds) {
  const auto at = std::ranges::find_if(forecasts, holds);
  return static_cast<std::size_t>(at - forecasts.begin());
}

std::size_t nearest(const std::vector<ChoiceForecast>& forecasts, double peak) {
  const auto distance = [&](const ChoiceForecast& f) { return std::abs(f.figure_gib - peak); };
  const auto at = std::ranges::min_element(
      forecasts, [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
  return static_cast<std::size_t>(at - forecasts.begin());
}

/// Of those whose figure is `least` or more the smallest; of none the largest.
std::size_t least_above(const std::vector<ChoiceForecast>& forecasts, double least) {
  std::size_t out = 0;
  const auto better = [&](double a, double b) {
    return (a >= least) != (b >= least) ? a >= least : (a >= least) == (a < b);
  };
  for (std::size_t i = 1; i < forecasts.size(); ++i)
    if (better(forecasts[i].figure_gib, forecasts[out].figure_gib)) out = i;
  return out;
}

/// What a row leaves open, and what it may be.
struct Open {
  struct Value {
    std::string word;
    std::function<void(PublishedRow&)> put;
    bool usual = false;
  };
  std::string what;  // "recompute", "the sequence length"
  std::vector<Value> values;
  bool tokens = false;
};

template <class Member>
Open::Value number(std::int64_t n, const char* unit, Member member, bool usual) {
  return {fmt::format("{}{}", sim::grouped(n), unit), [=](PublishedRow& row) { row.*member = n; },
          usual};
}

Open open_sequence(const PublishedRow& row) {
  Open out{"the sequence length", {}, true};
  const auto put = [](std::int64_t n) {
    return Open::Value{sim::grouped(n) + " tokens",
                       [=](PublishedRow& choice) { choice.seq_len = n, choice.packing.clear(); }};
  };
  if (row.seq_len)  // the most that an unpacked sequence may have
    for (const std::int64_t part : {8, 4, 2, 1}) out.values.push_back(put(*row.seq_len / part));
  else
    for (const std::int64_t n : {2048, 4096, 8192}) out.values.push_back(put(n));
  out.values[row.seq_len ? 3 : 1].usual = true;
  return out;
}

/// As many as the model's ranks need, or a node.
Open open_gpus(const PublishedRow& row) {
  Open out{"the number of GPUs", {}, false};
  const auto degree = [](const auto& stated) { return stated.value_or(1); };
  const std::int64_t ranks =
      std::max(degree(row.tp) * degree(row.pp) * degree(row.cp), degree(row.ep) * degree(row.pp));
  const std::int64_t node = row.gpus_per_node.value_or(8);
  for (std::int64_t n = ranks; n <= std::max(node, ranks); n *= 2)
    out.values.push_back(number(n, " GPUs", &PublishedRow::gpus, false));
  out.values.back().usual = true;
  return out;
}

Open open_expert_degree(const PublishedRow& row) {
  Open out{"the expert degree", {}, false};
  const std::int64_t room = row.gpus.value_or(8) / std::max<std::int64_t>(1, row.pp.value_or(1));
  for (std::int64_t n = 1; n <= std::min(room, *row.experts); n *= 2)
    if (*row.experts % n == 0 && room % n == 0)
      out.values.push_back(number(n, " expert ranks", &PublishedRow::ep, false));
  out.values.back().usual = true;  // recipes share experts over all that they can
  return out;
}

Open open_recompute(const FrameworkDefaults& framework) {
  const std::string usual =
      sim::word_for(sim::recompute_names, framework.recompute.value_or(workloads::Recompute::none));
  Open out{"recompute", {}, false};
  for (const std::string& kind : kinds_of_recompute())
    out.values.push_back(
        {kind, [=](PublishedRow& row) { row.activation_checkpointing = kind; }, kind == usual});
  return out;
}

std::vector<Open> open_of(const PublishedRow& row, const FrameworkDefaults& framework) {
  std::vector<Open> out;
  if (row.activation_checkpointing.empty()) out.push_back(open_recompute(framework));
  if (row.compile.empty() && framework.compiles) {
    const auto put = [](const char* word) {
      return [=](PublishedRow& choice) { choice.compile = word; };
    };
    out.push_back(
        {"a compiler",
         {{out.empty() ? "not compiled" : "", put("no"), true}, {"compiled", put("yes"), false}},
         false});
  }
  if (!row.seq_len || lower(row.packing).starts_with("unpacked")) out.push_back(open_sequence(row));
  if (!row.micro_batch_seqs && !row.global_batch_seqs) {
    Open batch{"the micro-batch", {}, true};
    for (const std::int64_t n : {1, 2, 4, 8})
      batch.values.push_back(number(n, " a micro-batch", &PublishedRow::micro_batch_seqs,
                                    n == framework.micro_batch.value_or(1)));
    out.push_back(std::move(batch));
  }
  if (!row.gpus) out.push_back(open_gpus(row));
  const bool shares = row.experts.value_or(0) > 1 && framework.expert_degree_open;
  if (shares && !row.ep) out.push_back(open_expert_degree(row));
  return out;
}

}  // namespace

std::string told_open(const PublishedRow& row, const FrameworkDefaults& framework) {
  const std::vector<Open> open = open_of(row, framework);
  std::string out;
  for (std::size_t i = 0; i < open.size(); ++i)
    out += (i == 0 ? "" : i + 1 == open.size() ? " and " : ", ") + open[i].what;
  return out + (open.size() > 1 ? " are" : " is") + " not stated: ";
}

std::vector<OpenChoice> open_choices(const PublishedRow& row, const FrameworkDefaults& framework) {
  std::vector<OpenChoice> out{{"", row, true}};
  for (const Open& open : open_of(row, framework)) {
    std::vector<OpenChoice> more;
    for (const Open::Value& value : open.values)
      for (const OpenChoice& choice : out) {
        OpenChoice& next = more.emplace_back(choice);
        value.put(next.row);
        next.name += (next.name.empty() || value.word.empty() ? "" : ", ") + value.word;
        next.is_default = next.is_default && value.usual;
        next.tokens = next.tokens || open.tokens;
      }
    out = std::move(more);
  }
  return out;
}

double figure_of(const workloads::MemoryFigures& figures, const std::string& figure) {
  const Bytes bytes = figure == "allocated"  ? figures.allocated
                      : figure == "reserved" ? figures.reserved
                      : figure == "process"  ? figures.process()
                                             : figures.needed();
  return static_cast<double>(bytes.value) / bytes_of_gib;
}

TakenChoice taken_choice(const PublishedRow& row, const std::vector<ChoiceForecast>& forecasts) {
  const bool ran = !row.ran_out_of_memory;
  const double peak = ran ? row.mem_gib_per_gpu.value_or(0) : 0.0;
  const double least = ran ? 0.0 : row.mem_gib_per_gpu.value_or(0);
  TakenChoice out;
  const char* why = "the framework's own default";
  const auto is_default = [](const ChoiceForecast& f) { return f.choice->is_default; };
  if (peak > 0) {
    out.index = nearest(forecasts, peak);
    why = "nearest to the peak";
  } else if (least > 0 && forecasts.front().choice->tokens) {
    out.index = least_above(forecasts, least);
    why = "the least that has what was allocated when memory ran out";
  } else {
    out.index = first_where(forecasts, is_default);
    if (out.index == forecasts.size()) out.index = 0;  // it cannot be made
    if (ran && !forecasts[out.index].fits) {
      out.index = std::min(first_where(forecasts, [](const auto& f) { return f.fits; }),
                           forecasts.size() - 1);
      why = "the least that fits";
    }
  }
  constexpr std::size_t most_named = 12;  // the others are counted
  std::size_t named = 0;
  for (const ChoiceForecast& f : forecasts)
    if (named++ < most_named)
      out.told +=
          fmt::format("{}{} {:.1f} GiB", named == 1 ? "" : "; ", f.choice->name, f.figure_gib);
  if (named > most_named) out.told += fmt::format("; {} others", named - most_named);
  out.told += fmt::format("; taken: {}, {}", forecasts[out.index].choice->name, why);
  return out;
}

}  // namespace stepcast::validate
