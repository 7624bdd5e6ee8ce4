#include "sim/tables/hdf5_module.hpp"

#include "sim/tables/hdf5_file.hpp"

namespace stepcast::sim {

void stepcast_read_hdf5(const std::string& path, std::unique_ptr<ColumnReader>& made) {
  made = std::make_unique<Hdf5Reader>(path);
}

void stepcast_write_hdf5(const std::string& path, std::unique_ptr<ColumnWriter>& made) {
  made = std::make_unique<Hdf5Writer>(path);
}

}  // namespace stepcast::sim
