#include "sim/launch/argument_text.hpp"

#include <algorithm>

#include "sim/launch/words.hpp"

namespace stepcast::sim {
namespace {

std::int64_t digits_of(const std::string& text, std::size_t at) {
  std::int64_t out = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
    out = 10 * out + text[at] - '0';
  return out;
}

const LaunchWord& word_of(std::string_view name) {
  std::string plain(name);
  std::ranges::replace(plain, '-', '_');
  return written_word(megatron_words(), plain);
}

}  // namespace

bool is_megatron_deepspeed(const Scenario& s) {
  return s.software.framework == "megatron-deepspeed";
}

MegatronRelease megatron_release(const Scenario& s) {
  const std::string& version = s.software.version;
  if (s.software.framework != "megatron-core") return {digits_of(version, 0), 0};
  const std::size_t dot = version.find('.');
  return {2024, dot == std::string::npos ? 0 : digits_of(version, dot + 1)};
}

std::string framework_and_version(const Scenario& s) {
  return s.software.framework + " " + s.software.version;
}

ArgumentText::ArgumentText(const Scenario& s)
    : release(megatron_release(s)),
      framework_(framework_and_version(s)),
      by_core_(s.software.framework == "megatron-core") {}

bool ArgumentText::has(std::string_view name) const {
  return !by_core_ || is_in(word_of(name), static_cast<int>(release.minor));
}

void ArgumentText::line(std::string_view name, const std::string& value) {
  const LaunchWord& word = word_of(name);
  text += value.empty() ? fmt::format("--{}\n", name) : fmt::format("--{} {}\n", name, value);
  if (by_core_ && release.minor < word.since)
    notes.push_back(fmt::format("--{} came with Megatron core 0.{}: {} does not know it.", name,
                                word.since, framework_));
}

}  // namespace stepcast::sim
