#include "sim/tables/hdf5_elements.hpp"

#include <hdf5.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <vector>

#include "sim/tables/hdf5_file.hpp"

namespace stepcast::sim {
namespace {

// One byte of deflate stands for at most 1,032 (zlib's own bound): more is no compression.
constexpr std::size_t most_inflation = 1032;

[[noreturn]] void damaged() { throw std::runtime_error("is damaged"); }

/// What a chunk went through when it was written, in order.
std::vector<H5Z_filter_t> filters_of(hid_t properties) {
  std::vector<H5Z_filter_t> filters;
  const int count = H5Pget_nfilters(properties);
  if (count < 0) damaged();
  for (unsigned i = 0; i < static_cast<unsigned>(count); ++i) {
    unsigned flags = 0, config = 0;
    std::array<unsigned, 8> parameters{};
    std::size_t num_parameters = parameters.size();
    filters.push_back(H5Pget_filter2(properties, i, &flags, &num_parameters, parameters.data(), 0,
                                     nullptr, &config));
    if (filters.back() != H5Z_FILTER_SHUFFLE && filters.back() != H5Z_FILTER_DEFLATE)
      throw std::runtime_error("is damaged, or compressed with other than gzip and shuffle");
  }
  return filters;
}

std::string inflated(const std::string& packed, std::size_t size) {
  std::string out(size, '\0');
  uLongf written = size;
  const int result = uncompress(reinterpret_cast<Bytef*>(out.data()), &written,
                                reinterpret_cast<const Bytef*>(packed.data()), packed.size());
  if (result != Z_OK || written != size) damaged();
  return out;
}

/// Shuffle stores first bytes of all elements first, then all second ones, and so on.
std::string unshuffled(const std::string& bytes, std::size_t element) {
  const std::size_t elements = bytes.size() / element;
  std::string out(bytes.size(), '\0');
  for (std::size_t b = 0; b < element; ++b)
    for (std::size_t i = 0; i < elements; ++i) out[i * element + b] = bytes[b * elements + i];
  return out;
}

std::string chunk_at(hid_t dataset, hsize_t row, const std::vector<H5Z_filter_t>& filters,
                     std::size_t element, std::size_t size) {
  hsize_t stored = 0;
  if (H5Dget_chunk_storage_size(dataset, &row, &stored) < 0 || stored == 0 ||
      stored > size + size / 2 + 64 ||
      size / most_inflation > stored)  // deflate adds 0.1 % at most
    damaged();
  std::string bytes(static_cast<std::size_t>(stored), '\0');
  std::uint32_t left_out = 0;  // filters that gained nothing when it was written, a bit for each
  if (H5Dread_chunk(dataset, H5P_DEFAULT, &row, &left_out, bytes.data()) < 0) damaged();
  for (std::size_t i = filters.size(); i-- > 0;) {
    if ((left_out >> i & 1U) != 0) continue;
    if (filters[i] == H5Z_FILTER_DEFLATE)
      bytes = inflated(bytes, size);
    else if (bytes.size() == size)
      bytes = unshuffled(bytes, element);
  }
  if (bytes.size() != size) damaged();
  return bytes;
}

std::string from_chunks(hid_t dataset, hid_t properties, std::size_t rows, std::size_t element) {
  hsize_t chunk = 0;
  if (H5Pget_chunk(properties, 1, &chunk) != 1 || chunk == 0 ||
      chunk > std::numeric_limits<std::uint32_t>::max() / element)
    damaged();
  const std::vector<H5Z_filter_t> filters = filters_of(properties);
  std::string all;
  for (hsize_t row = 0; row < rows; row += chunk)
    all += chunk_at(dataset, row, filters, element, static_cast<std::size_t>(chunk) * element);
  all.resize(rows * element);  // the last chunk is stored whole
  return all;
}

}  // namespace

std::string hdf5_elements(std::int64_t dataset, std::size_t rows, std::size_t element) {
  if (rows == 0) return {};
  const Hdf5Handle properties(H5Dget_create_plist(dataset), H5Pclose);
  if (!properties || element == 0) damaged();
  if (H5Pget_layout(properties.get()) == H5D_CHUNKED)
    return from_chunks(dataset, properties.get(), rows, element);
  const Hdf5Handle type(H5Dget_type(dataset), H5Tclose);
  const Hdf5Handle file(H5Iget_file_id(dataset), H5Fclose);
  hsize_t file_size = 0;
  if (!type || H5Tget_size(type.get()) != element ||
      H5Dget_storage_size(dataset) != rows * element ||
      H5Fget_filesize(file.get(), &file_size) < 0 || rows * element > file_size)
    damaged();
  std::string all(rows * element, '\0');
  if (H5Dread(dataset, type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, all.data()) < 0) damaged();
  return all;
}

}  // namespace stepcast::sim
