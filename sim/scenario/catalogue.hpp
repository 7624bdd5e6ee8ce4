// The catalogue: GPUs, nodes, fabrics, models and software by name, each a TOML file that states
// its sources. A scenario names an entry, changes members of one, or brings its own file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/files/toml_table.hpp"
#include "sim/network/nccl/time.hpp"
#include "sim/tables/gpu_identity.hpp"
#include "topology/specs.hpp"
#include "workloads/plan/software.hpp"
#include "workloads/plan/transformer.hpp"

namespace stepcast::sim {

class ModelIndex;
struct IndexedModel;

/// One sentence of a catalogue file on where its numbers come from.
struct SourceNote {
  std::string key;  // empty: the whole entry
  std::string text;
};

/// Of a TOML file or a config.json, and of no entry.
bool is_file_name(const std::string& name);

/// The node that `--gpu h100` means.
struct NodeOfGpu {
  std::string node, gpu;  // entries of the catalogue; the GPU may be a file
  bool put_in = false;    // the node is another GPU's, this one takes its place

  /// What `cluster.node` would say.
  TomlValue value(const std::string& where) const;
  /// A sentence for the user where the GPU was put in, else "".
  std::string note() const;
};

/// Reads a file when it is first asked for, and once: a file that changes later is not read again.
/// Threads may share one.
class Catalogue {
 public:
  using Changes = std::vector<std::string>;

  /// `directory` holds gpus/, architectures/, nodes/, fabrics/, models/, hub/, software/, nccl/,
  /// exchange/ and network/.
  explicit Catalogue(std::string directory);
  ~Catalogue();
  Catalogue(Catalogue&&) noexcept;
  /// The one of sim/program/installation.hpp.
  static Catalogue standard();

  const std::string& directory() const { return directory_; }
  /// Entries of a folder, sorted. Throws InputError when there is no such folder.
  std::vector<std::string> names(const std::string& folder) const;
  std::vector<SourceNote> sources(const std::string& folder, const std::string& name) const;
  /// Where a model read from a config.json is only nearly what that says; of other files none.
  std::vector<std::string> model_notes(const std::string& name, const std::string& where) const;

  /// Of the folder, a file, or for models an id at Hugging Face (sim/import/model_index.hpp).
  bool has(const std::string& folder, const std::string& name) const;
  /// The name that an entry is shown by: for "qwen3-4b-instruct" Qwen/Qwen3-4B.
  std::string full_name(const std::string& folder, const std::string& name) const;
  const ModelIndex& model_index() const;

  /// The value of an entry, made of its document when it is first asked for.
  template <class Value, class Make>
  const Value& once(const TomlValue& document, Make make) const;

  /// The file of an entry: by name, or "my/node.toml" beside the file that `where` stands in; of a
  /// model also a config.json.
  /// Lives as long as the catalogue.
  const TomlValue& entry(const std::string& folder, const std::string& name,
                         const std::string& where) const;

  /// Of that version; InputError at `where` when it is not known. Lives as long as the catalogue.
  const NcclFacts& nccl(const std::string& version, const std::string& where = "nccl") const;
  /// All of exchange/.
  std::vector<ExchangeKernels> exchanges() const;
  /// network/fitted.toml.
  NetworkConstants network_constants() const;

  // Each reads a value of a scenario: the name of an entry, or a table with `name` and the members
  // that differ; a name that the catalogue lacks needs a table with all members.
  // `changed` is appended the keys that differ from the entry's.
  topology::NodeSpec node(const TomlValue& value, Changes* changed = nullptr) const;
  topology::GpuSpec gpu(const TomlValue& value, const topology::GpuSpec* base = nullptr,
                        Changes* changed = nullptr) const;
  topology::FabricSpec fabric(const TomlValue& value, Changes* changed = nullptr) const;
  /// Of architectures/, or a file beside that of `where`.
  topology::Architecture architecture(const std::string& name, const std::string& where) const;

  // The tables [model] and [software]; keys that are not theirs stay unread in `table`.
  workloads::TransformerShape model(TableReader& table) const;
  workloads::Software software(TableReader& table) const;

  /// All GPUs, read at the first question.
  const GpuIdentities& gpus() const;
  /// The node that the GPU's file names; else a DGX, else any node that holds it; else the node of
  /// another GPU of its form (with NVLink or without), best of its architecture and a DGX. `gpu`
  /// may be a file.
  NodeOfGpu node_of_gpu(const std::string& gpu, const std::string& where) const;

 private:
  bool in_folder(const std::string& folder, const std::string& name) const;
  const IndexedModel* indexed(const std::string& folder, const std::string& name) const;
  std::vector<std::string> known_models() const;
  struct Files;  // what was read so far
  /// Which framework and version an entry of software/ is.
  struct SoftwareName {
    std::string entry, framework, version;
  };
  const std::vector<std::string>& known(const std::string& folder) const;
  const std::vector<SoftwareName>& known_software() const;
  /// By which names an entry of gpus/ is found, and whose kin it is.
  struct GpuName {
    std::string entry;
    std::vector<std::string> aliases;
    std::string generation;
  };
  const std::vector<GpuName>& known_gpus() const;
  /// The GPUs of one generation, at a fraction of what reading all costs.
  const GpuIdentities& gpus_of(const std::string& generation) const;
  /// As of gpus().find().
  const GpuIdentity* find_gpu(const std::string& name) const;
  GpuIdentity gpu_of_file(const std::string& file, const std::string& where) const;
  std::optional<std::string> own_node(const GpuIdentity& gpu) const;
  std::optional<std::string> node_like(const GpuIdentity& wanted) const;

  std::string directory_;
  std::unique_ptr<Files> files_;
};

/// Throws InputError unless the numbers of the shape agree with each other.
void check_shape(const workloads::TransformerShape& shape, const std::string& where);

}  // namespace stepcast::sim
