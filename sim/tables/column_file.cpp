#include "sim/tables/column_file.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <fstream>

#include "engine/check.hpp"
#include "sim/program/installation.hpp"
#include "sim/tables/flat_file.hpp"
#include "sim/tables/hdf5_module.hpp"

namespace stepcast::sim {
namespace {

/// A function of the HDF5 module, which is loaded with the first file and stays.
template <class Function>
Function* hdf5_function(const char* name) {
  const std::string path = shipped_library(hdf5_module_name);
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const found = module == nullptr ? nullptr : dlsym(module, name);
  if (found == nullptr)
    throw InputError(path, std::string("HDF5 cannot be loaded: ") + dlerror(),
                     "is libhdf5 installed, and the program whole?");
  return reinterpret_cast<Function*>(found);
}

bool is_flat(const std::string& path) {
  std::string head(flat_name.size(), '\0');
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;  // its reader says so
  std::ifstream(path, std::ios::binary).read(head.data(), static_cast<long>(head.size()));
  return head == flat_name;
}

}  // namespace

std::unique_ptr<ColumnWriter> write_columns(const std::string& path) {
  if (path.ends_with(flat_ending)) return std::make_unique<FlatWriter>(path);
  std::unique_ptr<ColumnWriter> made;
  hdf5_function<decltype(stepcast_write_hdf5)>("stepcast_write_hdf5")(path, made);
  return made;
}

std::unique_ptr<ColumnReader> read_columns(const std::string& path) {
  if (is_flat(path)) return std::make_unique<FlatReader>(path);
  std::unique_ptr<ColumnReader> made;
  hdf5_function<decltype(stepcast_read_hdf5)>("stepcast_read_hdf5")(path, made);
  return made;
}

}  // namespace stepcast::sim
