// The elements of a 1-D HDF5 dataset as they lie in the file, taken apart by us: HDF5 1.10 trusts
// the sizes that a damaged file names and copies past the end of a chunk. Here each chunk must hold
// exactly what its type and length ask for. Knows shuffle and deflate, what h5py calls gzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace stepcast::sim {

/// `rows` elements of `element` bytes each, of an open dataset. Throws std::runtime_error that says
/// what is wrong with it.
std::string hdf5_elements(std::int64_t dataset, std::size_t rows, std::size_t element);

}  // namespace stepcast::sim
