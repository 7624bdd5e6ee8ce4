#include "sim/page/page_file.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/check.hpp"
#include "sim/command/completion.hpp"
#include "sim/files/gzip.hpp"
#include "sim/files/input_file.hpp"
#include "sim/files/json_text.hpp"
#include "sim/program/command_line.hpp"
#include "sim/program/installation.hpp"
#include "sim/program/today.hpp"

namespace stepcast::sim {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* shell_name = "stepcast_page.html";
constexpr std::string_view place_of_data = "{\"data\":\"of stepcast page\"}";

std::string read_shell() {
  const std::string path = shipped_file(shell_name);
  std::error_code error;
  if (!fs::exists(path, error))
    throw InputError(shell_name, "is not there: the program has not been built for the browser",
                     "build it with ./dev page");
  return read_input(path);
}

/// Catalogue and tables as the program in the page finds them.
std::vector<std::pair<std::string, std::string>> shipped_files(const Catalogue& catalogue) {
  std::vector<std::pair<std::string, std::string>> out;
  const fs::path root = catalogue.directory();
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.is_regular_file())
      out.emplace_back("/stepcast/scenarios/" + fs::relative(entry.path(), root).generic_string(),
                       entry.path().string());
  out.emplace_back("/stepcast/published.columns", shipped_file("published.columns"));
  std::ranges::sort(out);
  return out;
}

/// A line of JSON with names and sizes, then the files one after the other.
std::string packed_files(const Catalogue& catalogue) {
  Json sizes = Json::object();
  std::string all;
  for (const auto& [name, path] : shipped_files(catalogue)) {
    const std::string text = read_input(path);
    sizes[name] = text.size();
    all += text;
  }
  return base64(gzip(json_text(sizes) + "\n" + all));
}

/// Values of the options that have lists.
Json choices(std::span<const Option> options, const Catalogue& catalogue) {
  Json out = Json::object();
  for (const Option& option : options)
    if (std::vector<std::string> values = values_of_option(option, catalogue); !values.empty())
      out[option.name] = std::move(values);
  return out;
}

/// The memory of each GPU.
Json memory_gib(const Catalogue& catalogue) {
  Json out = Json::object();
  for (const std::string& name : catalogue.names("gpus"))
    out[name] =
        static_cast<double>(catalogue.gpu(toml_text(name, "page")).memory.value) / (1 << 30);
  return out;
}

}  // namespace

std::string base64(std::string_view bytes) {
  static constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i)
      out += i <= count ? digits[group >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

std::string page_file(const PageQuestion& question, std::span<const Option> options,
                      const Catalogue& catalogue) {
  std::string shell = read_shell();
  const std::size_t at = shell.find(place_of_data);
  if (at == std::string::npos)
    throw InputError(shell_name, "has no place for the catalogue", "build it anew with ./dev page");
  const Json data{{"version", version_text()},
                  {"written", today()},
                  {"words", question.words},
                  {"scenario", question.scenario},
                  {"report", question.report},
                  {"choices", choices(options, catalogue)},
                  {"memory_gib", memory_gib(catalogue)},
                  {"files", packed_files(catalogue)}};
  std::string text;
  for (const char c : json_text(data)) {  // no end tag of the script around it
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  }
  return shell.replace(at, place_of_data.size(), text);
}

}  // namespace stepcast::sim
