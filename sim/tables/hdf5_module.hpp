// What the HDF5 module exports. Debian's libhdf5 brings libcurl and twenty libraries more, 10 ms of
// a program's start: it is loaded when an HDF5 file is first read or written (column_file.cpp).
#pragma once

#include <memory>
#include <string>

#include "sim/tables/column_file.hpp"

namespace stepcast::sim {

inline constexpr const char* hdf5_module_name = "stepcast_hdf5.so";

extern "C" {
void stepcast_read_hdf5(const std::string& path, std::unique_ptr<ColumnReader>& made);
void stepcast_write_hdf5(const std::string& path, std::unique_ptr<ColumnWriter>& made);
}

}  // namespace stepcast::sim
