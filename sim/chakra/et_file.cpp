#include "sim/chakra/et_file.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <set>

#include "engine/check.hpp"
#include "sim/files/gzip.hpp"
#include "sim/files/protobuf.hpp"

namespace stepcast::sim {
namespace {

enum GlobalField : std::uint32_t { global_version = 1, global_attr = 2 };
enum NodeField : std::uint32_t {
  node_id = 1,
  node_name = 2,
  node_type = 3,
  node_ctrl_deps = 4,
  node_data_deps = 5,
  node_start = 6,
  node_duration = 7,
  node_inputs = 8,
  node_attr = 10
};
enum AttrField : std::uint32_t {
  attr_name = 1,
  attr_double = 3,
  attr_float = 5,
  attr_int32 = 7,
  attr_int64 = 9,
  attr_uint32 = 11,
  attr_uint64 = 13,
  attr_sint32 = 15,
  attr_sint64 = 17,
  attr_sfixed64 = 25,
  attr_bool = 27,
  attr_string = 29
};
constexpr std::uint32_t values_of_info = 1;
// What ASTRA-sim's example generators write (GlobalMetadata, read 2026-11).
constexpr std::string_view schema_version = "0.0.4";

ProtoWriter attribute(std::string_view name) {
  ProtoWriter out;
  out.bytes(attr_name, name);
  return out;
}

void add_number(ProtoWriter& node, std::string_view name, AttrField type,
                const std::optional<std::int64_t>& value) {
  if (!value) return;
  ProtoWriter attr = attribute(name);
  attr.number(type, *value);
  node.message(node_attr, attr);
}

void add_text(ProtoWriter& node, std::uint32_t field, std::string_view name,
              const std::string& value) {
  if (value.empty()) return;
  ProtoWriter attr = attribute(name);
  attr.bytes(attr_string, value);
  node.message(field, attr);
}

struct Attribute {
  std::string name;
  std::optional<std::int64_t> number{};
  std::string text{};
};

/// sint32 and sint64 alternate between positive and negative numbers.
std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1 ^ (~(value & 1) + 1));
}

/// A number of whatever type the writer chose; lists are left out.
Attribute read_attribute(std::string_view bytes, bool& broken) {
  Attribute out;
  ProtoReader reader(bytes);
  while (const auto field = reader.next()) {
    using Wire = ProtoField::Wire;
    if (field->number == attr_name) {
      out.name = field->text;
    } else if (field->number == attr_string) {
      out.text = field->text;
    } else if (field->number == attr_double && field->wire == Wire::fixed64) {
      out.number = std::llround(std::bit_cast<double>(field->value));
    } else if (field->number == attr_float && field->wire == Wire::fixed32) {
      out.number = std::llround(std::bit_cast<float>(static_cast<std::uint32_t>(field->value)));
    } else if (field->number == attr_sint32 || field->number == attr_sint64) {
      out.number = unzigzag(field->value);
    } else if (field->number <= attr_bool && field->wire != Wire::bytes) {
      out.number = field->whole();
    }
  }
  broken = broken || reader.broken();
  return out;
}

void set_attribute(EtNode& node, const Attribute& a) {
  if (a.name == "is_cpu_op")
    node.is_cpu_op = a.number.value_or(0) != 0;
  else if (a.name == "num_ops")
    node.num_ops = a.number;
  else if (a.name == "tensor_size")
    node.tensor_size = a.number;
  else if (a.name == "comm_type")
    node.comm_type = a.number;
  else if (a.name == "comm_size")
    node.comm_size = a.number;
  else if (a.name == "comm_src")
    node.comm_src = a.number;
  else if (a.name == "comm_dst")
    node.comm_dst = a.number;
  else if (a.name == "comm_tag")
    node.comm_tag = a.number;
  else if (a.name == "pg_name")
    node.pg_name = a.number ? std::to_string(*a.number) : a.text;
  else if (a.name == "stream")
    node.stream = a.number ? std::to_string(*a.number) : a.text;
  else if (a.name == "dtype")
    node.dtype = a.text;
  else if (a.name == "pair")
    node.pair = a.text;
}

/// Of a field that repeats, packed or one by one.
void add_ids(const ProtoField& field, std::vector<std::uint64_t>& out, bool& broken) {
  if (field.wire != ProtoField::Wire::bytes) return out.push_back(field.value);
  ProtoReader list(field.text);
  while (list.bytes_left() > 0 && !list.broken())
    if (const auto id = list.raw()) out.push_back(*id);
  broken = broken || list.broken();
}

class EtReader {
 public:
  explicit EtReader(const std::string& path) : text_(read_packed(path)) { out_.path = path; }

  EtFile read() {
    ProtoReader stream(text_);
    bool first = true;
    while (const auto message = stream.delimited()) {
      first ? global(*message) : node(*message);
      first = false;
    }
    if (stream.broken()) torn("ends in the middle of a message");
    if (out_.nodes.empty()) torn("has no node");
    return std::move(out_);
  }

 private:
  [[noreturn]] void torn(const std::string& what) const {
    throw InputError(out_.path, what,
                     "copy it again: a Chakra trace is GlobalMetadata, then nodes");
  }

  void global(std::string_view message) {
    ProtoReader reader(message);
    bool broken = false;
    while (const auto field = reader.next()) {
      if (field->number == global_version) out_.facts["version"] = field->text;
      if (field->number != global_attr) continue;
      const Attribute a = read_attribute(field->text, broken);
      out_.facts[a.name] = a.number ? std::to_string(*a.number) : a.text;
    }
    if (broken || reader.broken()) torn("does not begin with GlobalMetadata");
  }

  void node(std::string_view message) {
    EtNode node;
    bool broken = false;
    std::int64_t type = 0;
    ProtoReader reader(message);
    while (const auto field = reader.next()) {
      switch (field->number) {
        case node_id:
          node.id = field->value;
          break;
        case node_name:
          node.name = field->text;
          break;
        case node_type:
          type = field->whole();
          break;
        case node_ctrl_deps:
          add_ids(*field, node.control_deps, broken);
          break;
        case node_data_deps:
          add_ids(*field, node.data_deps, broken);
          break;
        case node_start:
          node.start_us = field->whole();
          break;
        case node_duration:
          node.duration_us = field->whole();
          break;
        case node_inputs:
          inputs(field->text, node, broken);
          break;
        case node_attr:
          set_attribute(node, read_attribute(field->text, broken));
          break;
        default:
          break;
      }
    }
    if (broken || reader.broken()) torn("holds a node that is no message");
    keep(std::move(node), type);
  }

  static void inputs(std::string_view message, EtNode& node, bool& broken) {
    ProtoReader info(message);
    while (const auto field = info.next())
      if (field->number == values_of_info) node.inputs = field->text;
    broken = broken || info.broken();
  }

  void keep(EtNode node, std::int64_t type) {
    if (type <= 0 || type >= num_et_types)
      throw InputError(
          out_.path,
          fmt::format("node {} \"{}\" is of type {}, which is not read", node.id, node.name, type),
          "COMP, COMM_COLL, COMM_SEND, COMM_RECV, MEM_LOAD, MEM_STORE, METADATA are");
    if (!ids_.insert(node.id).second)
      throw InputError(out_.path, fmt::format("has two nodes {}", node.id), "ids are unique");
    if (node.duration_us < 0 || node.start_us < 0)
      throw InputError(out_.path, fmt::format("node {} has a negative time", node.id));
    node.type = static_cast<EtType>(type);
    out_.nodes.push_back(std::move(node));
  }

  const std::string text_;
  EtFile out_;
  std::set<std::uint64_t> ids_;
};

}  // namespace

EtWriter::EtWriter(const std::map<std::string, std::string>& facts) {
  ProtoWriter global, stream;
  global.bytes(global_version, schema_version);
  for (const auto& [name, value] : facts) add_text(global, global_attr, name, value);
  stream.delimited(global.text());
  out_ = stream.text();
}

void EtWriter::add(const EtNode& node) {
  ProtoWriter out;
  out.varint(node_id, node.id);
  out.bytes(node_name, node.name);
  out.number(node_type, static_cast<std::int64_t>(node.type));
  for (const std::uint64_t id : node.data_deps) out.varint(node_data_deps, id);
  out.number(node_start, node.start_us);
  out.number(node_duration, node.duration_us);
  ProtoWriter cpu = attribute("is_cpu_op");
  cpu.number(attr_bool, node.is_cpu_op ? 1 : 0);
  out.message(node_attr, cpu);
  // The types that the feeder asks for (astra-sim #224: comm_size is int64).
  add_number(out, "num_ops", attr_int64, node.num_ops);
  add_number(out, "tensor_size", attr_uint64, node.tensor_size);
  add_number(out, "comm_type", attr_int64, node.comm_type);
  add_number(out, "comm_size", attr_int64, node.comm_size);
  add_number(out, "comm_src", attr_int32, node.comm_src);
  add_number(out, "comm_dst", attr_int32, node.comm_dst);
  add_number(out, "comm_tag", attr_int32, node.comm_tag);
  add_text(out, node_attr, "pg_name", node.pg_name);
  add_text(out, node_attr, "stream", node.stream);
  add_text(out, node_attr, "dtype", node.dtype);
  add_text(out, node_attr, "pair", node.pair);
  ProtoWriter stream;
  stream.delimited(out.text());
  out_ += stream.text();
}

EtFile read_et(const std::string& path) { return EtReader(path).read(); }

}  // namespace stepcast::sim
