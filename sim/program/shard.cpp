#include "sim/program/shard.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "sim/program/command_line.hpp"

namespace stepcast::sim {
namespace {

constexpr std::size_t most_shards = 1'000'000;

/// Two numbers with this word between them.
std::optional<Shard> shard_in(std::string_view text, std::string_view between) {
  Shard out;
  const char *begin = text.data(), *end = begin + text.size();
  const auto first = std::from_chars(begin, end, out.index);
  if (first.ec != std::errc{} ||
      !std::string_view(first.ptr, static_cast<std::size_t>(end - first.ptr)).starts_with(between))
    return std::nullopt;
  const auto rest = std::from_chars(first.ptr + between.size(), end, out.of);
  if (rest.ec != std::errc{} || rest.ptr != end || out.index < 1 || out.index > out.of ||
      out.of > most_shards)
    return std::nullopt;
  return out;
}

}  // namespace

std::string Shard::name() const { return is_part() ? fmt::format("{}-of-{}", index, of) : ""; }

Shard read_shard(const std::string& text) {
  if (const auto shard = shard_in(text, "/")) return *shard;
  throw UsageError("'--shard " + text + "' is no shard", "write --shard 2/8: the second of eight");
}

Shard shard_of_name(const std::string& name) { return shard_in(name, "-of-").value_or(Shard{}); }

}  // namespace stepcast::sim
