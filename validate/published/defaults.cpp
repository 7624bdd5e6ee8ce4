#include "validate/published/defaults.hpp"

#include <filesystem>

#include "sim/scenario/catalogue.hpp"
#include "validate/published/cluster_rules.hpp"
#include "validate/published/framework_rules.hpp"

namespace stepcast::validate {

struct PublishedDefaults::Files {
  FrameworkFile frameworks;
  ClusterFile clusters;
};

PublishedDefaults::PublishedDefaults(const std::string& directory,
                                     const sim::Catalogue& catalogue) {
  const std::filesystem::path folder = directory;
  files_ = std::make_shared<const Files>(
      Files{read_framework_file((folder / "published_frameworks.toml").string()),
            read_cluster_file((folder / "published_clusters.toml").string(), catalogue)});
}

PublishedDefaults PublishedDefaults::standard(const sim::Catalogue& catalogue) {
  // Normalised first: the catalogue may be named "scenarios/".
  const auto scenarios = std::filesystem::absolute(catalogue.directory() + "/.").lexically_normal();
  return PublishedDefaults((scenarios.parent_path().parent_path() / "validate").string(),
                           catalogue);
}

FrameworkDefaults PublishedDefaults::framework(const PublishedRow& row) const {
  const GpuRule& gpu = files_->clusters.gpu_of(row);
  return files_->frameworks.of(row, gpu.gpu, gpu.date);
}

ClusterDefaults PublishedDefaults::cluster(const PublishedRow& row) const {
  return cluster(row, framework(row).date);
}

ClusterDefaults PublishedDefaults::cluster(const PublishedRow& row, YearMonth date) const {
  return files_->clusters.of(row, date);
}

bool PublishedDefaults::aside(const PublishedRow& row) const {
  return files_->clusters.gpu_of(row).aside;
}

std::vector<std::string> PublishedDefaults::rules() const {
  std::vector<std::string> out;
  for (const auto& rule : files_->frameworks.frameworks) out.push_back("framework/" + rule.name);
  for (const auto& rule : files_->frameworks.details) out.push_back("detail/" + rule.name);
  for (const auto& rule : files_->clusters.gpus) out.push_back("gpu/" + rule.name);
  for (const auto& rule : files_->clusters.nodes) out.push_back("node/" + rule.name);
  return out;
}

}  // namespace stepcast::validate
