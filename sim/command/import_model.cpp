#include <cstdio>

#include "sim/command/commands.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/import/model_config.hpp"

namespace stepcast::sim {
namespace {

constexpr Option import_model_options[] = {
    {"out", "FILE.toml", "", "write it there, a file that --model takes; else print it"},
};

/// The entry is read back as a model before it is shown: its sizes must agree.
TomlValue checked_entry(const std::string& path, const Catalogue& catalogue) {
  if (!is_model_config(path))
    throw UsageError("'" + path + "' is no config.json", "a name that ends in .json");
  TomlValue asked = toml_table(path);
  asked.set("name", toml_text(path, path));
  TableReader table(asked, "model");
  catalogue.model(table);
  return catalogue.entry("models", path, path);
}

int import_model(const Arguments& arguments, const Catalogue& catalogue) {
  const std::string text = write_toml(checked_entry(arguments.first("which file?"), catalogue));
  if (arguments.has("out"))
    write_whole(arguments.get("out"), text);
  else
    tell(stdout, text);
  return exit_ok;
}

}  // namespace

Command import_model_command() {
  return {{"stepcast import-model", "CONFIG.json", 1,
           "Makes a Hugging Face config.json an entry like those of stepcast show models.",
           import_model_options, "stepcast import-model config.json --out my-model.toml"},
          import_model};
}

}  // namespace stepcast::sim
