#include "fuzz/readers.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/import/import_files.hpp"
#include "calibrate/import/nccl_debug_log.hpp"
#include "calibrate/import/nccl_tests_csv.hpp"
#include "calibrate/import/nccl_tests_json.hpp"
#include "calibrate/import/nccl_tests_log.hpp"
#include "calibrate/import/topology_matrix.hpp"
#include "calibrate/import/topology_xml.hpp"
#include "calibrate/rows/text_lines.hpp"
#include "engine/check.hpp"
#include "sim/chakra/et_file.hpp"
#include "sim/compare/side.hpp"
#include "sim/design/goal.hpp"
#include "sim/design/parts.hpp"
#include "sim/design/terms.hpp"
#include "sim/files/csv.hpp"
#include "sim/files/gzip.hpp"
#include "sim/files/toml_value.hpp"
#include "sim/import/calibration_csv.hpp"
#include "sim/import/model_config.hpp"
#include "sim/import/published_csv.hpp"
#include "sim/inputs/document.hpp"
#include "sim/inputs/launch_file.hpp"
#include "sim/output/row_log.hpp"
#include "sim/run/residuals.hpp"
#include "sim/run/session.hpp"
#include "sim/scenario/failure_keys.hpp"
#include "sim/scenario/file.hpp"
#include "sim/scenario/goal_file.hpp"
#include "sim/scenario/order_file.hpp"
#include "sim/scenario/stage_layout.hpp"
#include "sim/scenario/what_if.hpp"
#include "sim/scripts/python_calls.hpp"
#include "sim/scripts/shell_text.hpp"
#include "sim/scripts/yaml_settings.hpp"
#include "sim/search/bases.hpp"
#include "sim/study/sweep.hpp"
#include "sim/tables/calibration_table.hpp"
#include "sim/timeline/timeline_file.hpp"
#include "validate/diagnose/surroundings.hpp"
#include "validate/pasted/pasted_text.hpp"
#include "validate/pasted/said.hpp"
#include "validate/trace/log.hpp"
#include "validate/trace/records/events.hpp"
#include "validate/trace/records/file.hpp"
#include "validate/trace/records/nsight.hpp"
#include "validate/trainer/ranks/communicator.hpp"
#include "validate/trainer/ranks/rendezvous_words.hpp"
#include "validate/trainer/ranks/text.hpp"
#include "validate/trainer/run/checkpoint.hpp"

/// HDF5 does not free all that it had of a file that it refuses.
extern "C" const char* __lsan_default_suppressions();  // what LeakSanitizer asks for
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5\n"; }

namespace stepcast::fuzz {
namespace {

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The bytes as a file, for readers that open one: in memory, gone with the object.
class File {
 public:
  File(Bytes bytes, std::string_view ending) {
    namespace fs = std::filesystem;
    const fs::path folder = fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
    path_ = folder / ("stepcast-fuzz-" + std::to_string(::getpid()) + "." + std::string(ending));
    std::ofstream(path_, std::ios::binary) << text_of(bytes);
  }
  ~File() { std::filesystem::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

const sim::Catalogue& catalogue() {
  static const sim::Catalogue shared(STEPCAST_SOURCE_DIR "/scenarios");
  return shared;
}

sim::Scenario scenario_of(Bytes bytes) {
  return sim::read_scenario(sim::read_toml(text_of(bytes), "fuzz.toml"), catalogue());
}

void read_as_trace(const std::string& path) {
  validate::Surroundings around;
  validate::read_surroundings(path, around);
  validate::TraceFile file(path);
  if (validate::is_trace(file))
    validate::read_trace(path, file);
  else
    validate::read_log(path, file);
}

/// A text as people paste it, and what its prose says.
void read_as_pasted(Bytes bytes) {
  const validate::PastedText pasted = validate::read_pasted(text_of(bytes), "fuzz.md", catalogue());
  if (!pasted.configurations.empty()) sim::read_launch_files(pasted.configurations, catalogue());
  sim::Facts facts;
  validate::add_said(text_of(bytes), "fuzz.md", catalogue(), facts);
}

/// The bytes as the file of the one rank that saved.
void load_as_checkpoint(Bytes bytes) {
  namespace fs = std::filesystem;
  const File marker({}, "checkpoint");
  const fs::path folder = marker.path() + "s", step = folder / "step-00000007";
  fs::create_directories(step);
  std::ofstream(folder / "latest") << "7\n";
  std::ofstream(step / "rank-0000-of-0001.h5", std::ios::binary) << text_of(bytes);
  std::vector<float> weights(8), first(8), second(8);
  validate::run_ranks(1, [&](std::unique_ptr<validate::Communicator> world) {
    try {
      validate::load_checkpoint(folder, {"job", "scenario"}, {weights, first, second}, *world);
    } catch (const InputError&) {
    }
  });
}

/// All that ranks which have not been let in yet can say: the file of the meeting, and lines.
void hear_ranks(Bytes bytes) {
  sim::words_in(File(bytes, "rendezvous").path(), validate::rank_greeting);
  const std::string_view text = text_of(bytes);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    validate::call_in(std::string(text.substr(at, end - at)));
    at = end + 1;
  }
}

void read_space(Bytes bytes) {
  static const std::vector<sim::Scenario> bases = [] {
    const std::string_view goal = R"(
model = { name = "llama2-7b" }
cluster = { node = "dgx-h100", nodes = 1 }
batch = { global = 8 }
software = { framework = "pytorch-fsdp2" })";
    return sim::search_bases(sim::read_toml(goal, "goal.toml"), catalogue());
  }();
  sim::SearchSpace space(bases, false);
  space.set_all(sim::read_toml(text_of(bytes), "fuzz.toml"));
  std::size_t walked = 0;
  space.walk([&](const sim::KnobValues&, const sim::DraftPlan&) { return ++walked < 1000; });
}

/// Lists that a scenario names by their file.
void read_lists(Bytes bytes) {
  const File file(bytes, "toml");
  const auto each = [](auto read) {
    try {
      read();
    } catch (const InputError&) {
    }
  };
  each([&] { sim::listed_rent(catalogue(), file.path(), "h100-sxm5-80gb", "fuzz"); });
  each([&] { sim::listed_capex(catalogue(), file.path(), "h100-sxm5-80gb", "fuzz"); });
  each([&] { sim::read_parts(catalogue(), file.path(), "fuzz"); });
  each([&] { sim::read_quotes(catalogue(), file.path(), "fuzz"); });
  each([&] { sim::read_failure_rates(sim::read_toml_file(file.path()), catalogue()); });
}

/// A launch file of another framework, as `name` makes it look.
void read_as_launch(Bytes bytes, const std::string& name) {
  const sim::NamedText file{name, std::string(text_of(bytes))};
  const auto input = sim::read_launch_files({&file, 1}, catalogue());
  if (!input) return;
  sim::TomlValue document = sim::facts_document(input->facts, name);
  sim::set_path(document, "cluster.node", sim::toml_text("dgx-h100", name));
  sim::complete_machine(document, input->facts, catalogue());
  if (sim::missing_keys(document, input->facts, catalogue()).empty())
    sim::read_scenario(document, catalogue());
}

/// No more ranks and micro-batches than an execution a second allows.
bool is_small(const sim::Scenario& s) {
  return s.plan.ranks() <= 256 && s.batch.micro_batches <= 64 && s.model.layers <= 128;
}

constexpr Reader table[] = {
    {"toml", "toml", [](Bytes b) { sim::read_toml(text_of(b), "fuzz.toml"); }},
    {"scenario", "toml", [](Bytes b) { scenario_of(b); }},
    {"study", "toml", [](Bytes b) { sim::read_study(sim::read_toml(text_of(b), "fuzz.toml")); }},
    {"simulate", "toml",
     [](Bytes b) {
       static sim::Session session(catalogue());
       const sim::Scenario scenario = scenario_of(b);
       if (is_small(scenario)) session.step(scenario);
     }},
    {"csv", "csv", [](Bytes b) { sim::parse_csv("fuzz.csv", text_of(b)); }},
    {"published_csv", "csv",
     [](Bytes b) { sim::import_published_csv(sim::parse_csv("fuzz.csv", text_of(b))); }},
    {"calibration_csv", "csv",
     [](Bytes b) { sim::import_csv(sim::parse_csv("fuzz.csv", text_of(b))); }},
    {"import", "log",
     [](Bytes b) {
       const File file(b, "log");
       calibrate::import_files(std::vector{file.path()});
     }},
    {"hdf5", "h5", [](Bytes b) { sim::read_calibration(File(b, "h5").path()); }},
    {"columns", "columns", [](Bytes b) { sim::read_calibration(File(b, "columns").path()); }},
    {"gzip", "gz", [](Bytes b) { sim::read_packed(File(b, "gz").path()); }},
    {"nccl_tests", "log",
     [](Bytes b) {
       calibrate::Ignored ignored;
       calibrate::parse_nccl_tests_log(calibrate::parse_text("fuzz.log", text_of(b)), ignored);
     }},
    {"nccl_tests_json", "json",
     [](Bytes b) {
       calibrate::Ignored ignored;
       calibrate::parse_nccl_tests_json("fuzz.json", text_of(b), ignored);
     }},
    {"nccl_tests_csv", "csv",
     [](Bytes b) {
       const sim::CsvFile file = sim::parse_csv("fuzz.csv", text_of(b));
       if (calibrate::is_nccl_tests_csv(file)) calibrate::parse_nccl_tests_csv(file);
     }},
    {"nccl_debug", "log",
     [](Bytes b) {
       calibrate::Ignored ignored;
       calibrate::parse_nccl_debug_log(calibrate::parse_text("fuzz.log", text_of(b)), {}, ignored);
     }},
    {"topology_xml", "xml",
     [](Bytes b) {
       calibrate::Ignored ignored;
       calibrate::parse_topology_xml("fuzz.xml", text_of(b), ignored);
     }},
    {"topology_matrix", "txt",
     [](Bytes b) {
       calibrate::Ignored ignored;
       calibrate::parse_topology_matrix(calibrate::parse_text("fuzz.txt", text_of(b)), ignored);
     }},
    {"trace", "json", [](Bytes b) { read_as_trace(File(b, "json").path()); }},
    {"pasted", "md", read_as_pasted},
    {"nsight", "sqlite", [](Bytes b) { validate::read_nsight(File(b, "sqlite").path()); }},
    {"chakra", "et", [](Bytes b) { sim::read_et(File(b, "et").path()); }},
    {"design_goal", "toml",
     [](Bytes b) { sim::read_design_goal(sim::read_toml(text_of(b), "fuzz.toml")); }},
    {"timeline", "json", [](Bytes b) { sim::read_timelines(File(b, "json").path()); }},
    {"result", "json", [](Bytes b) { sim::read_sides(File(b, "json").path()); }},
    {"model_config", "json", [](Bytes b) { sim::read_model_config(File(b, "json").path()); }},
    {"launch_script", "sh", [](Bytes b) { read_as_launch(b, "fuzz.sh"); }},
    {"launch_yaml", "yaml", [](Bytes b) { read_as_launch(b, "fuzz.yaml"); }},
    {"launch_toml", "toml",
     [](Bytes b) {
       sim::torchtitan_input(sim::read_toml(text_of(b), "fuzz.toml"), "fuzz.toml", catalogue());
     }},
    {"shell", "sh", [](Bytes b) { sim::read_shell(text_of(b), "fuzz.sh"); }},
    {"yaml", "yaml", [](Bytes b) { sim::read_yaml_settings(text_of(b), "fuzz.yaml"); }},
    {"json", "json", [](Bytes b) { sim::read_json_settings(text_of(b), "fuzz.json"); }},
    {"python_calls", "py", [](Bytes b) { sim::read_python_calls(text_of(b), "fuzz.py"); }},
    {"orders", "csv", [](Bytes b) { sim::parse_orders("fuzz.csv", text_of(b)); }},
    {"stage_layout", "txt", [](Bytes b) { sim::parse_stage_layout(text_of(b), "fuzz"); }},
    {"what_if", "txt", [](Bytes b) { sim::read_what_ifs(std::string(text_of(b)), "fuzz"); }},
    {"residuals", "csv", [](Bytes b) { sim::read_residuals(File(b, "csv").path()); }},
    {"checkpoint", "h5", load_as_checkpoint},
    {"rendezvous", "txt", hear_ranks},
    {"space", "toml", read_space},
    {"lists", "toml", read_lists},
    {"rows", "jsonl",
     [](Bytes b) { sim::read_rows(File(b, "jsonl").path(), [](const sim::LoggedRow&) {}); }},
    {"training_text", "txt", [](Bytes b) { validate::read_text(File(b, "txt").path(), 256); }},
};

}  // namespace

std::span<const Reader> readers() { return table; }

const Reader* find_reader(std::string_view name) {
  const auto found = std::ranges::find(table, name, &Reader::name);
  return found == std::end(table) ? nullptr : found;
}

void feed(const Reader& reader, Bytes bytes) {
  try {
    reader.read(bytes);
  } catch (const InputError&) {  // the user's mistake, said
  } catch (const NoFeasiblePlan&) {
  }
}

}  // namespace stepcast::fuzz
