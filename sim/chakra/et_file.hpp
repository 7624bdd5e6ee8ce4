// Chakra execution traces (mlcommons/chakra, schema/protobuf/et_def.proto, read 2026-11): a file
// per rank, a stream of messages, first GlobalMetadata, then a Node each. Writes and reads the
// fields that ASTRA-sim's feeder reads; knows no simulation.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/units.hpp"

namespace stepcast::sim {

enum class EtType : std::uint8_t {
  invalid,
  metadata,
  memory_load,
  memory_store,
  compute,
  send,
  receive,
  collective
};
inline constexpr std::int64_t num_et_types = 8;

/// CollectiveCommType.
enum class EtCollective : std::uint8_t {
  all_reduce,
  reduce,
  all_gather,
  gather,
  scatter,
  broadcast,
  all_to_all,
  reduce_scatter,
  reduce_scatter_block,
  barrier
};
inline constexpr std::int64_t num_et_collectives = 10;

/// Times in a trace are whole microseconds.
inline constexpr Duration et_time{1'000'000};

struct EtNode {
  std::uint64_t id = 0;
  std::string name;
  EtType type{};
  std::vector<std::uint64_t> control_deps{}, data_deps{};
  std::int64_t start_us = 0, duration_us = 0;
  std::string inputs{};  // IOInfo's values: JSON of process groups, on a metadata node

  // Attributes, by their names in the file; absent ones have no value.
  bool is_cpu_op = false;
  std::optional<std::int64_t> num_ops{}, tensor_size{};
  std::optional<std::int64_t> comm_type{}, comm_size{}, comm_src{}, comm_dst{}, comm_tag{};
  std::string pg_name{};
  std::string stream{};  // number or text
  std::string dtype{};   // of a collective, ours
  std::string pair{};    // of a message: the group of its two ranks, ours
};

/// Facts of GlobalMetadata: numbers as their text.
struct EtFile {
  std::string path;
  std::map<std::string, std::string> facts{};
  std::vector<EtNode> nodes{};
};

/// The bytes of a file.
class EtWriter {
 public:
  explicit EtWriter(const std::map<std::string, std::string>& facts);
  void add(const EtNode& node);
  const std::string& text() const { return out_; }

 private:
  std::string out_;
};

/// Packed ones as well. Throws InputError for a torn file, a type of node that the schema lacks,
/// two nodes of one id.
EtFile read_et(const std::string& path);

}  // namespace stepcast::sim
