#include "sim/scenario/catalogue.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <tuple>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/suggest.hpp"
#include "sim/import/model_config.hpp"
#include "sim/import/model_index.hpp"
#include "sim/program/installation.hpp"
#include "sim/scenario/catalogue_reference.hpp"
#include "sim/scenario/member_reader.hpp"
#include "sim/scenario/members.hpp"
#include "sim/tables/architecture_members.hpp"
#include "sim/tables/gpu_names.hpp"
#include "workloads/plan/lora.hpp"
#include "workloads/plan/model_size.hpp"
#include "workloads/plan/shape_rules.hpp"

namespace stepcast::sim {
namespace {

namespace fs = std::filesystem;

/// The file that `where` ("dir/scenario.toml:7") stands in.
fs::path file_of(const std::string& where) {
  return where.substr(0, std::min(where.rfind(':'), where.size()));
}

/// Sources are for the reader of the file and for `show`; they are not part of the value.
void read_sources(TableReader& table) {
  for (const char* key : {"source", "sources", "date", "note", "notes", "title"}) table.value(key);
}

/// The unit of a singular word in messages: folder "gpus" holds a "gpu".
std::string singular(const std::string& folder) {
  return folder.ends_with('s') ? folder.substr(0, folder.size() - 1) : folder;
}

std::string path_in(const std::string& directory, const std::string& folder,
                    const std::string& name) {
  return (fs::path(directory) / folder / (name + ".toml")).string();
}

void add_notes(std::vector<SourceNote>& notes, const std::string& key, const TomlValue& value) {
  if (const auto* text = value.text()) {
    notes.push_back({key, *text});
  } else if (const auto* table = value.table()) {
    for (const TomlEntry& entry : *table)
      add_notes(notes, key.empty() ? entry.key : key + "." + entry.key, entry.value);
  } else if (const auto* items = value.array()) {
    for (const TomlValue& item : *items) add_notes(notes, key, item);
  }
}

}  // namespace

struct Catalogue::Files {
  std::mutex mutex;
  // Nodes of a map stay where they are: what was handed out stays good.
  std::map<std::string, std::vector<std::string>> names;  // by folder
  std::map<std::string, TomlValue> documents;             // by path
  std::map<std::string, NcclFacts> nccl;                  // by version as asked for
  std::vector<SoftwareName> software;
  std::vector<GpuName> gpu_names;
  std::map<std::string, GpuIdentities> generations;
  std::once_flag gpus_read, index_read;
  ModelIndex index;
  GpuIdentities gpus;
  template <class Value>
  using ByDocument = std::map<const TomlValue*, Value>;
  std::tuple<ByDocument<topology::Architecture>, ByDocument<topology::GpuSpec>,
             ByDocument<topology::NodeSpec>, ByDocument<topology::FabricSpec>,
             ByDocument<workloads::TransformerShape>, ByDocument<workloads::Software>>
      values;

  const TomlValue& document(const std::string& path) {
    const std::lock_guard lock(mutex);
    const auto found = documents.find(path);
    if (found != documents.end()) return found->second;
    return documents
        .emplace(path, is_model_config(path) ? read_model_config(path) : read_toml_file(path))
        .first->second;
  }
};

bool is_file_name(const std::string& name) {
  return name.ends_with(".toml") || is_model_config(name);
}

Catalogue::Catalogue(std::string directory)
    : directory_(std::move(directory)), files_(std::make_unique<Files>()) {}
Catalogue::~Catalogue() = default;
Catalogue::Catalogue(Catalogue&&) noexcept = default;

Catalogue Catalogue::standard() { return Catalogue(catalogue_directory()); }

template <class Value, class Make>
const Value& Catalogue::once(const TomlValue& document, Make make) const {
  auto& known = std::get<Files::ByDocument<Value>>(files_->values);
  {
    const std::lock_guard lock(files_->mutex);
    if (const auto found = known.find(&document); found != known.end()) return found->second;
  }
  Value made = make();  // without the lock: it asks for other entries
  const std::lock_guard lock(files_->mutex);
  return known.emplace(&document, std::move(made)).first->second;
}

const std::vector<std::string>& Catalogue::known(const std::string& folder) const {
  const std::lock_guard lock(files_->mutex);
  if (const auto found = files_->names.find(folder); found != files_->names.end())
    return found->second;
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(fs::path(directory_) / folder, error))
    if (file.path().extension() == ".toml") out.push_back(file.path().stem().string());
  if (error)
    throw InputError("catalogue", "there is no folder '" + folder + "'",
                     "set STEPCAST_DATA to the folder 'scenarios' of stepcast");
  std::sort(out.begin(), out.end());
  return files_->names.emplace(folder, std::move(out)).first->second;
}

std::vector<std::string> Catalogue::names(const std::string& folder) const { return known(folder); }

const TomlValue& Catalogue::entry(const std::string& folder, const std::string& name,
                                  const std::string& where) const {
  std::error_code error;
  if (is_model_config(name) && folder != "models")
    throw InputError(where, "'" + name + "' is no " + singular(folder),
                     "a " + singular(folder) + " is a TOML file; config.json is a model's");
  if (is_file_name(name)) {
    const fs::path beside = file_of(where).parent_path() / name;
    return files_->document(fs::exists(beside, error) ? beside.string() : name);
  }
  if (const IndexedModel* model = indexed(folder, name)) {
    if (!model->unlike.empty())
      throw InputError(where, "model '" + model->id + "' is not modelled: it has " + model->unlike,
                       "the nearest that is: " + model->nearest);
    if (model->catalogue.empty()) return model->entry;
    return files_->document(path_in(directory_, folder, model->catalogue));
  }
  if (!has(folder, name) && fs::exists(name, error))
    throw InputError(where,
                     "'" + name + "' is no " + singular(folder) + " of the catalogue and no .toml",
                     folder == "models" ? "a model's file is TOML, or a config.json" : "");
  if (!has(folder, name))
    throw InputError(where, "unknown " + singular(folder) + " '" + name + "'",
                     suggestion(name, folder == "models" ? known_models() : known(folder)));
  return files_->document(path_in(directory_, folder, name));
}

const NcclFacts& Catalogue::nccl(const std::string& version, const std::string& where) const {
  {
    const std::lock_guard lock(files_->mutex);
    if (const auto found = files_->nccl.find(version); found != files_->nccl.end())
      return found->second;
  }
  NcclFacts facts{nccl_tuning_of(directory_ + "/nccl", version, where), network_constants(),
                  chosen_exchange_kernels(exchanges(), "", where)};
  const std::lock_guard lock(files_->mutex);
  return files_->nccl.emplace(version, std::move(facts)).first->second;
}

std::vector<ExchangeKernels> Catalogue::exchanges() const {
  return read_exchange_kernels(directory_ + "/exchange");
}

NetworkConstants Catalogue::network_constants() const {
  return network_constants_of(files_->document(directory_ + "/network/fitted.toml"));
}

std::vector<std::string> Catalogue::model_notes(const std::string& name,
                                                const std::string& where) const {
  std::vector<std::string> out;
  if (const IndexedModel* model = indexed("models", name); model != nullptr) {
    const TomlValue* note = model->entry.find("note");
    if (note != nullptr && note->text() != nullptr) out.push_back(*note->text());
    if (model_index().leaves_images_out(name))
      out.emplace_back("the encoder of images is not forecast");
  }
  if (!is_model_config(name)) return out;
  if (const TomlValue* notes = entry("models", name, where).find("notes"))
    for (const TomlValue& note : *notes->array()) out.push_back(*note.text());
  return out;
}

std::vector<SourceNote> Catalogue::sources(const std::string& folder,
                                           const std::string& name) const {
  const TomlValue& document = entry(folder, name, "catalogue");
  std::vector<SourceNote> notes;
  for (const char* key : {"source", "sources"})
    if (const TomlValue* value = document.find(key)) add_notes(notes, "", *value);
  return notes;
}

bool Catalogue::has(const std::string& folder, const std::string& name) const {
  return is_file_name(name) || in_folder(folder, name) || indexed(folder, name) != nullptr;
}

bool Catalogue::in_folder(const std::string& folder, const std::string& name) const {
  const std::vector<std::string>& all = known(folder);
  return std::binary_search(all.begin(), all.end(), name);
}

const ModelIndex& Catalogue::model_index() const {
  std::call_once(files_->index_read, [this] {
    files_->index = ModelIndex(read_toml_file(path_in(directory_, "hub", "models")));
  });
  return files_->index;
}

const IndexedModel* Catalogue::indexed(const std::string& folder, const std::string& name) const {
  if (folder != "models" || is_file_name(name) || in_folder(folder, name)) return nullptr;
  return model_index().find(name);
}

std::vector<std::string> Catalogue::known_models() const {
  std::vector<std::string> out = known("models");
  for (const IndexedModel& model : model_index().models()) out.push_back(model.id);
  return out;
}

std::string Catalogue::full_name(const std::string& folder, const std::string& name) const {
  const IndexedModel* model = indexed(folder, name);
  if (model == nullptr) return name;
  return model->catalogue.empty() ? model->id : model->catalogue;
}

namespace {

/// How one kind of entry is read. `marker` is a member that every complete entry states.
struct Kind {
  const char* folder;
  const char* table;
  const char* marker;
};
constexpr Kind gpu_kind{"gpus", "cluster.node.gpu", "architecture"};
constexpr Kind architecture_kind{"architectures", "architecture", "nccl"};
constexpr Kind node_kind{"nodes", "cluster.node", "kind"};
constexpr Kind fabric_kind{"fabrics", "cluster.fabric", "kind"};
constexpr Kind model_kind{"models", "model", "layers"};

/// A file of the catalogue; `name` where it does not say its own.
template <class Spec, class Fill>
Spec whole_entry(const Kind& kind, const TomlValue& document, const std::string& name, Fill fill) {
  TableReader table(document, "");
  Spec spec;
  const std::string called = is_file_name(name) ? fs::path(name).stem().string() : name;
  spec.name = table.text("name").value_or(called);
  // By which of two names would it be found?
  if (!is_file_name(name) && spec.name != called)
    table.fail("name", "'name' is \"" + spec.name + "\" in the file " + called + ".toml",
               "call both the same, or leave 'name' out");
  fill(spec, table, true);
  if (kind.folder == gpu_kind.folder)
    for (const char* key : identity_keys) table.value(key);  // read_identity reads them
  read_sources(table);
  table.finish();
  return spec;
}

template <class Spec, class Fill>
Spec named_entry(const Catalogue& catalogue, const Kind& kind, const std::string& name,
                 const std::string& where, Fill fill) {
  const TomlValue& document = catalogue.entry(kind.folder, name, where);
  return catalogue.once<Spec>(document, [&] {
    return whole_entry<Spec>(kind, document, catalogue.full_name(kind.folder, name), fill);
  });
}

/// A table with `name` and the members that differ from the entry of that name; without a name,
/// from `base`.
template <class Spec, class Fill>
Spec changed_entry(const Catalogue& catalogue, const Kind& kind, TableReader& table,
                   const Spec* base, Fill fill) {
  const auto name = table.text("name");
  const bool complete =
      table.value(kind.marker) != nullptr && !(name && catalogue.has(kind.folder, *name));
  Spec spec;
  if (!name && base != nullptr) {
    spec = *base;
  } else if (!complete) {
    const std::string known = table.required("name", name);
    spec = named_entry<Spec>(catalogue, kind, known, table.where("name"), fill);
  } else {
    spec.name = name.value_or("custom");
  }
  fill(spec, table, complete && (name || base == nullptr));
  return spec;
}

template <class Spec, class Fill>
Spec any_entry(const Catalogue& catalogue, const Kind& kind, const TomlValue& value,
               const Spec* base, Catalogue::Changes* changed, Fill fill) {
  if (const auto* name = value.text())
    return named_entry<Spec>(catalogue, kind, *name, value.where, fill);
  TableReader table(value, kind.table);
  Spec spec = changed_entry(catalogue, kind, table, base, fill);
  read_sources(table);
  table.finish();
  if (changed != nullptr)
    changed->insert(changed->end(), table.changes().begin(), table.changes().end());
  return spec;
}

/// Of architectures/, or of a file.
constexpr auto fill_architecture = [](topology::Architecture& architecture, TableReader& table,
                                      bool complete) {
  read_members(table, complete, [&](auto&& visitor) { visit_architecture(architecture, visitor); });
};

struct FillGpu {
  const Catalogue& catalogue;
  void operator()(topology::GpuSpec& gpu, TableReader& table, bool complete) const;
};

void FillGpu::operator()(topology::GpuSpec& gpu, TableReader& table, bool complete) const {
  read_members(table, complete, [&](auto&& visitor) { visit_gpu(gpu, visitor); });
  if (table.value("architecture") != nullptr)
    gpu.architecture = catalogue.architecture(gpu.architecture.name, table.where("architecture"));
  if (gpu.idle > gpu.tdp)
    table.fail(table.value("idle") != nullptr ? "idle" : "tdp",
               "an idle card draws " + to_text(gpu.idle) + ", a full one " + to_text(gpu.tdp),
               "idle is below tdp");
}

}  // namespace

/// One of a file is called by its path, so that a resolved scenario finds it again.
topology::Architecture Catalogue::architecture(const std::string& name,
                                               const std::string& where) const {
  auto out =
      named_entry<topology::Architecture>(*this, architecture_kind, name, where, fill_architecture);
  if (is_file_name(name))
    out.name = file_of(entry(architecture_kind.folder, name, where).where).string();
  return out;
}

topology::GpuSpec Catalogue::gpu(const TomlValue& value, const topology::GpuSpec* base,
                                 Changes* changed) const {
  auto gpu = any_entry<topology::GpuSpec>(*this, gpu_kind, value, base, changed, FillGpu{*this});
  const auto own = std::ranges::find(known_gpus(), gpu.name, &GpuName::entry);
  gpu.relatives.clear();
  if (own != known_gpus().end()) gpu.relatives = gpus_of(own->generation).relatives_of(gpu.name);
  return gpu;
}

const std::vector<Catalogue::GpuName>& Catalogue::known_gpus() const {
  const std::vector<std::string>& entries = known(gpu_kind.folder);
  const std::lock_guard lock(files_->mutex);
  if (!files_->gpu_names.empty()) return files_->gpu_names;
  std::vector<GpuName> out;
  for (const std::string& entry : entries) {
    const std::string path = path_in(directory_, gpu_kind.folder, entry);
    const std::string text = read_toml_text(path);
    auto aliases = peek_texts(text, "aliases");
    const bool own = text.find("generation") != std::string::npos;
    auto generation = peek_text(text, own ? "generation" : "architecture");
    if (!aliases || !generation) {
      const TomlValue whole = read_toml(text, path);
      TableReader table(whole, "");
      aliases = table.texts("aliases").value_or(std::vector<std::string>{});
      generation = table.text("generation");
      if (!generation) generation = table.required("architecture", table.text("architecture"));
    }
    out.push_back({entry, *std::move(aliases), *std::move(generation)});
  }
  return files_->gpu_names = std::move(out);
}

const GpuIdentities& Catalogue::gpus_of(const std::string& generation) const {
  {
    const std::lock_guard lock(files_->mutex);
    const auto found = files_->generations.find(generation);
    if (found != files_->generations.end()) return found->second;
  }
  std::vector<GpuIdentity> all;  // without the lock: each asks for its file
  for (const GpuName& known : known_gpus())
    if (known.generation == generation) all.push_back(gpu_of_file(known.entry, "catalogue"));
  const std::lock_guard lock(files_->mutex);
  return files_->generations.emplace(generation, std::move(all)).first->second;
}

const GpuIdentity* Catalogue::find_gpu(const std::string& name) const {
  const auto is_this = [&](const std::string& word) {
    return table_name(word) == table_name(name);
  };
  for (const GpuName& known : known_gpus())
    if (is_this(known.entry) || std::ranges::any_of(known.aliases, is_this))
      return gpus_of(known.generation).find(name);
  return gpus().find(name);
}

const GpuIdentities& Catalogue::gpus() const {
  std::call_once(files_->gpus_read, [this] {
    std::vector<GpuIdentity> all;
    for (const std::string& name : names(gpu_kind.folder))
      all.push_back(gpu_of_file(name, "catalogue"));
    files_->gpus = GpuIdentities(std::move(all));
  });
  return files_->gpus;
}

GpuIdentity Catalogue::gpu_of_file(const std::string& file, const std::string& where) const {
  const TomlValue& document = entry(gpu_kind.folder, file, where);
  return read_identity(
      document, named_entry<topology::GpuSpec>(*this, gpu_kind, file, where, FillGpu{*this}));
}

topology::NodeSpec Catalogue::node(const TomlValue& value, Changes* changed) const {
  return any_entry<topology::NodeSpec>(
      *this, node_kind, value, nullptr, changed,
      [&](auto& node, TableReader& table, bool complete) {
        const TomlValue* gpu_value = table.value("gpu");
        read_members(table, complete, [&](auto&& visitor) { visit_node(node, visitor); });
        if (complete) table.required("gpu", gpu_value);
        if (gpu_value != nullptr)
          node.gpu = gpu(*gpu_value, complete ? nullptr : &node.gpu, changed);
        const bool is_file = gpu_value != nullptr && gpu_value->text() != nullptr &&
                             is_file_name(*gpu_value->text());
        agree_on_nvlink(
            node, table,
            is_file ? &entry(gpu_kind.folder, *gpu_value->text(), gpu_value->where) : gpu_value);
        if (complete) refer(*this, node, table);
      });
}

topology::FabricSpec Catalogue::fabric(const TomlValue& value, Changes* changed) const {
  return any_entry<topology::FabricSpec>(
      *this, fabric_kind, value, nullptr, changed,
      [this](auto& fabric, TableReader& table, bool complete) {
        read_members(table, complete, [&](auto&& visitor) { visit_fabric(fabric, visitor); });
        if (complete) refer(*this, fabric, table);
        if (fabric.oversubscription < 1)
          table.fail("oversubscription", "'oversubscription' is less than 1",
                     "1 is a fabric without, 2 has half the uplinks");
      });
}

workloads::TransformerShape Catalogue::model(TableReader& table) const {
  workloads::TransformerShape shape = changed_entry<workloads::TransformerShape>(
      *this, model_kind, table, nullptr, [](auto& model, TableReader& members, bool complete) {
        read_members(members, complete, [&](auto&& visitor) { visit_model(model, visitor); });
      });
  if (shape.kv_heads == 0) shape.kv_heads = shape.heads;
  if (workloads::latent(shape)) shape.head_dim = workloads::score_width(shape);
  if (shape.head_dim == 0 && shape.hidden % shape.heads == 0)
    shape.head_dim = shape.hidden / shape.heads;
  check_shape(shape, table.where());
  return shape;
}

namespace {

bool has_large_mixer(const workloads::TransformerShape& s) {
  constexpr std::int64_t most = 1'000'000;
  for (const std::int64_t size :
       {s.value_dim, s.window_heads, s.window_kv_heads, s.window_head_dim, s.experts.latent,
        s.delta.key_heads, s.delta.value_heads, s.delta.key_dim, s.delta.value_dim,
        s.state_space.heads, s.state_space.head_dim, s.state_space.groups, s.state_space.state,
        s.index.heads, s.index.dim})
    if (size > most) return true;
  return s.index.top > 100'000'000;
}

}  // namespace

void check_shape(const workloads::TransformerShape& shape, const std::string& where) {
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    throw InputError(where, "model '" + shape.name + "': " + what, hint);
  };
  const auto text = [](std::int64_t n) { return std::to_string(n); };
  if (shape.head_dim == 0)
    refuse(text(shape.heads) + " heads do not divide hidden " + text(shape.hidden),
           "state head_dim if the model has one of its own");
  if (shape.heads % shape.kv_heads != 0)
    refuse(text(shape.kv_heads) + " kv_heads do not divide " + text(shape.heads) + " heads",
           "each key/value head serves equally many query heads");
  if (shape.rope && shape.alibi) refuse("both rope and alibi", "state rope = false for ALiBi");
  for (const auto rules : {workloads::shape_rules(), workloads::lora_rules()})
    if (const auto* rule = workloads::broken_rule(rules, shape))
      refuse(rule->what(shape), rule->hint(shape));
  // Beyond these no product of sizes overflows 63 bits, and no model is near.
  if (shape.layers > 100'000 || shape.hidden > 10'000'000 || shape.heads > 1'000'000 ||
      shape.head_dim > 1'000'000 || shape.ffn_hidden > 100'000'000 || shape.vocab > 100'000'000 ||
      shape.experts.count > 1'000'000 || shape.experts.ffn > 10'000'000 ||
      shape.experts.shared_ffn > 100'000'000 || shape.latent.kv_rank > 1'000'000 ||
      shape.latent.q_rank > 1'000'000 || shape.latent.value > 1'000'000 ||
      shape.mtp_layers > 1'000 || has_large_mixer(shape))
    refuse("a size is too large", "the largest trained models have some hundred layers");
}

namespace {

workloads::Software read_software(const TomlValue& document) {
  TableReader table(document, "");
  workloads::Software software;
  software.framework = table.required("framework", table.text("framework"));
  software.version = table.required("version", table.text("version"));
  read_members(table, true, [&](auto&& visitor) { visit_software(software, visitor); });
  read_sources(table);
  table.finish();
  return software;
}

}  // namespace

const std::vector<Catalogue::SoftwareName>& Catalogue::known_software() const {
  const std::vector<std::string>& entries = known("software");
  const std::lock_guard lock(files_->mutex);
  if (!files_->software.empty()) return files_->software;
  std::vector<SoftwareName> out;
  for (const std::string& entry : entries) {
    const std::string path = path_in(directory_, "software", entry);
    const std::string text = read_toml_text(path);
    auto framework = peek_text(text, "framework"), version = peek_text(text, "version");
    if (!framework || !version) {
      const workloads::Software whole = read_software(read_toml(text, path));
      framework = whole.framework;
      version = whole.version;
    }
    out.push_back({entry, *framework, *version});
  }
  return files_->software = std::move(out);
}

workloads::Software Catalogue::software(TableReader& table) const {
  const auto version = table.text("version");
  const workloads::Software usual;
  const std::string framework = table.text("framework").value_or(usual.framework);
  // Without a version: the study's for its framework, else the framework's newest.
  const std::string wanted = version.value_or(framework == usual.framework ? usual.version : "");

  std::vector<std::string> frameworks, versions;
  std::optional<workloads::Software> software;
  std::string chosen;
  for (const SoftwareName& known : known_software()) {
    frameworks.push_back(known.framework);
    if (known.framework != framework) continue;
    versions.push_back(known.version);
    if (wanted.empty() || known.version == wanted) chosen = known.entry;
  }
  if (!chosen.empty()) {
    const TomlValue& document = entry("software", chosen, table.where());
    software = once<workloads::Software>(document, [&] { return read_software(document); });
  }
  const bool complete = !software && version && table.value("launch_kernel") != nullptr;
  if (complete) {
    software = usual;
    software->framework = framework;
    software->version = *version;
  } else if (versions.empty()) {
    throw InputError(table.where("framework"), "unknown framework '" + framework + "'",
                     suggestion(framework, frameworks));
  } else if (!software) {
    throw InputError(table.where("version"), "no data for " + framework + " " + wanted,
                     suggestion(wanted, versions));
  }
  const bool torch = software->eager() || software->compiled();
  read_members(table, complete, [&](auto&& visitor) { visit_software(*software, visitor); });
  if (const auto word = table.text("fusion"); !torch && word && (*word == "yes" || *word == "no"))
    table.fail("fusion", "--compile " + *word + " with " + software->framework,
               "torch.compile is a choice of torch's frameworks: pytorch-fsdp2, torchtitan, trl");
  return *software;
}

}  // namespace stepcast::sim
