#include "validate/diagnose/files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include "engine/check.hpp"
#include "sim/files/gzip.hpp"
#include "sim/scripts/text_pieces.hpp"
#include "validate/diagnose/network_tests.hpp"
#include "validate/diagnose/node_reports.hpp"
#include "validate/pasted/lines.hpp"
#include "validate/pasted/pasted_text.hpp"
#include "validate/pasted/said.hpp"
#include "validate/trace/records/nsight.hpp"
#include "validate/trace/timeline.hpp"

namespace stepcast::validate {
namespace {

/// Neither a trace nor a database.
bool is_text(const std::string& path) {
  TraceFile file(path);
  return !is_sqlite(file) && !is_timeline(file) &&
         (!is_trace(file) || is_configuration(file.ahead()));
}

/// None where it is longer than anybody pastes.
std::optional<std::string> short_text(const std::string& path) {
  constexpr std::size_t longest = 1 << 20;
  TraceFile file(path);
  std::string out;
  while (!file.ahead().empty()) {
    out += file.take();
    if (out.size() > longest) return std::nullopt;
  }
  return out;
}

bool has_fence(std::string_view text) {
  return text.starts_with("```") || text.find("\n```") != std::string_view::npos;
}

/// The texts around a run, for what prose alone says.
struct Prose {
  std::string path, text;
};

class Reader {
 public:
  explicit Reader(const sim::Catalogue& catalogue) : catalogue_(catalogue) {}

  void read(const std::string& path) {
    const bool text = is_text(path);
    if (is_network_test(path)) {
      out_.network_tests.push_back(path);
      return;
    }
    if (text && is_topology(path)) {
      out_.topologies.push_back(path);
      return;
    }
    const std::size_t signs = out_.around.signs.size();
    out_.around.known = false;
    if (text) read_surroundings(path, out_.around);
    const bool known = out_.around.known || out_.around.signs.size() > signs;
    TraceInputs one;
    try {
      if (!text || !read_as_pasted(path, one)) read_run_file(path, catalogue_, one);
    } catch (const InputError& error) {
      // nvidia-smi's report, a launch script or NCCL's log has no steps, and needs none.
      if (!known || error.problem() != no_steps_in(path).problem()) throw;
    }
    add(std::move(one), path);
  }

  DiagnoseInputs take() {
    Facts& facts = out_.run.facts;
    if (facts.gpu.empty() && !out_.around.gpu.empty()) {
      facts.gpu = out_.around.gpu;
      facts.gpu_source = out_.around.gpu_source;
    }
    for (RunLog& run : out_.logs) settle(run);
    for (const Prose& prose : prose_) add_said(prose.text, prose.path, catalogue_, facts);
    count_updates(out_.run);
    return std::move(out_);
  }

 private:
  void add(TraceInputs one, const std::string& path) {
    TraceInputs& all = out_.run;
    add_facts(all.facts, one.facts, path);
    for (std::string& note : one.facts.notes) all.facts.notes.push_back(std::move(note));
    if (one.logs.empty()) add_facts(shared_, one.facts, path);
    for (StepLog& log : one.logs) {
      out_.logs.push_back({log, one.facts});
      all.logs.push_back(std::move(log));
    }
    for (RankTrace& trace : one.traces) all.traces.push_back(std::move(trace));
    for (auto& timeline : one.timelines) all.timelines.push_back(std::move(timeline));
  }

  bool is_log(const std::string& path) const {
    return std::ranges::any_of(out_.run.logs, [&](const StepLog& log) { return log.file == path; });
  }

  /// What the log's own file leaves open the others say.
  void settle(RunLog& run) const {
    Facts facts = shared_;
    add_facts(facts, run.facts, run.log.file);
    for (const Prose& prose : prose_)
      if (prose.path == run.log.file || !is_log(prose.path))
        add_said(prose.text, prose.path, catalogue_, facts);
    if (facts.gpu.empty()) facts.gpu = out_.around.gpu;
    run.facts = std::move(facts);
    TraceInputs alone;
    alone.logs.push_back(std::move(run.log));
    alone.facts = run.facts;
    count_updates(alone);
    run.log = std::move(alone.logs.front());
  }

  /// False: no pasted text; what it is one reader knows.
  bool read_as_pasted(const std::string& path, TraceInputs& out) {
    const std::optional<std::string> text = short_text(path);
    if (!text || text->empty()) return false;
    PastedText pasted = read_pasted(*text, path, catalogue_);
    const bool more = !sim::bare(pasted.others).empty();
    const bool several = !pasted.configurations.empty() && more;
    if (!several && !has_fence(*text)) {
      if (pasted.configurations.empty()) prose_.push_back({path, *text});
      return false;
    }
    add_configurations(path, pasted.configurations, out.facts);
    std::stringbuf others(pasted.others);
    try {
      StepLog log = read_log(path, others);
      Facts printed;  // is what ran
      add_facts(printed, log.settings, catalogue_, path);
      add_facts(out.facts, printed, path);
      for (std::string& note : printed.notes) out.facts.notes.push_back(std::move(note));
      if (!log.framework.empty()) out.logs.push_back(std::move(log));
    } catch (const InputError&) {
      if (pasted.configurations.empty()) throw;
    }
    prose_.push_back({path, std::move(*text)});
    return true;
  }

  void add_configurations(const std::string& path, const std::vector<sim::NamedText>& all,
                          Facts& facts) {
    if (all.empty()) return;
    std::vector<std::string> places;
    for (const sim::NamedText& one : all) places.push_back(one.path);
    if (const auto input = sim::read_launch_files(all, catalogue_)) {
      add_facts(facts, input->facts, path);
      for (std::string& said : sim::sentences_on(*input)) facts.notes.push_back(std::move(said));
    }
    if (all.size() > 1)
      facts.notes.push_back(fmt::format("Of what stands at {} the first that says a thing holds.",
                                        fmt::join(places, ", ")));
  }

  const sim::Catalogue& catalogue_;
  DiagnoseInputs out_;
  Facts shared_;  // of files without steps
  std::vector<Prose> prose_;
};

}  // namespace

DiagnoseInputs read_diagnose_files(const std::vector<std::string>& files,
                                   const sim::Catalogue& catalogue) {
  Reader reader(catalogue);
  for (const std::string& path : files) reader.read(path);
  return reader.take();
}

}  // namespace stepcast::validate
