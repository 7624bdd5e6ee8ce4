#include "sim/network/constants.hpp"

#include <algorithm>
#include <map>

#include "sim/files/toml_table.hpp"

namespace stepcast::sim {
namespace {

/// The last of `rows` stands for what came after it.
template <class Rows>
const auto& row_of(const Rows& rows, topology::NcclGeneration generation) {
  return rows[std::min(static_cast<std::size_t>(generation), rows.size() - 1)];
}

/// One reader per table of the file, made when its first constant is asked for.
class Tables {
 public:
  explicit Tables(TableReader& root) : root_(root) {}

  void operator()(const std::string& table, const std::string& key, Duration& member) {
    TableReader& reader = of(table);
    member = reader.required(key, reader.quantity<Duration>(key, Range::not_negative));
  }
  void operator()(const std::string& table, const std::string& key, double& member) {
    TableReader& reader = of(table);
    member = reader.required(key, reader.number(key, Range::not_negative));
  }
  void finish() const {
    for (const auto& [name, reader] : readers_) reader.finish();
  }

 private:
  TableReader& of(const std::string& name) {
    const auto found = readers_.find(name);
    if (found != readers_.end()) return found->second;
    const TomlValue* table = root_.required(name, root_.table(name));
    return readers_.try_emplace(name, *table, name).first->second;
  }

  TableReader& root_;
  std::map<std::string, TableReader> readers_;
};

}  // namespace

const GenerationConstants& NetworkConstants::of(topology::NcclGeneration wanted) const {
  return row_of(generation, wanted);
}

Duration NetworkConstants::extra_hop(topology::Network network,
                                     topology::NcclGeneration of_gpu) const {
  return row_of(of(network).hop, of_gpu);
}

Duration NetworkConstants::message(topology::Network network,
                                   topology::NcclGeneration of_gpu) const {
  return row_of(of(network).message, of_gpu);
}

NetworkConstants read_network_constants(const std::string& path) {
  return network_constants_of(read_toml_file(path));
}

NetworkConstants network_constants_of(const TomlValue& document) {
  TableReader root(document, "");
  NetworkConstants constants;
  constants.source = root.required("source", root.text("source"));
  root.table("residuals");  // for the reader of the file
  Tables tables(root);
  visit_network_constants(constants, tables);
  tables.finish();
  root.finish();
  return constants;
}

}  // namespace stepcast::sim
