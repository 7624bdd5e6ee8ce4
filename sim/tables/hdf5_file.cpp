#include "sim/tables/hdf5_file.hpp"

#include <hdf5.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "engine/check.hpp"
#include "sim/tables/hdf5_elements.hpp"

namespace stepcast::sim {
namespace {

static_assert(std::is_same_v<hid_t, std::int64_t>, "HDF5 1.10 or newer");
static_assert(std::is_same_v<herr_t, int>);

constexpr hsize_t most_rows = 1U << 28;        // beyond it a header is taken for damaged
constexpr std::size_t longest_text = 1 << 16;  // likewise
constexpr std::size_t longest_number = 16;     // likewise
constexpr hsize_t chunk_rows = 1U << 18;       // 256k: h5py readers timed, 2026-11
constexpr unsigned deflate_level = 1;          // level 4 costs half as much again and gains nothing

/// What HDF5 cannot close, because the file is damaged, it tries again when the program ends, and
/// complains on stderr. We close what we open; before the library's first call only.
void leave_exit_alone() { H5dont_atexit(); }

/// HDF5 prints its error stack to stderr unless told otherwise; we speak for it.
class Silence {
 public:
  Silence() {
    leave_exit_alone();
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Silence() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

/// Without the time of writing: equal content makes equal files.
Hdf5Handle timeless(hid_t kind) {
  Hdf5Handle how(H5Pcreate(kind), H5Pclose);
  H5Pset_obj_track_times(how.get(), false);
  return how;
}

Hdf5Handle text_type(std::size_t length) {
  Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), std::max<std::size_t>(1, length));
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
  return type;
}

/// False: HDF5 had no memory, or no room on the disk.
bool write_attribute(hid_t file, const std::string& object, const std::string& name, hid_t type,
                     const void* value) {
  const Silence silence;
  const Hdf5Handle holder(H5Oopen(file, object.c_str(), H5P_DEFAULT), H5Oclose);
  const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const Hdf5Handle attribute(
      H5Acreate2(holder.get(), name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT),
      H5Aclose);
  return attribute && H5Awrite(attribute.get(), type, value) >= 0;
}

OutputError not_written(const std::string& path, const std::string& what) {
  return {path, "cannot write " + what, "is the disk full, or is memory short?"};
}

/// Text of a fixed-length cell: up to the padding.
std::string trimmed(const char* cell, std::size_t length) {
  return {cell, std::find(cell, cell + length, '\0')};
}

}  // namespace

Hdf5Handle::Hdf5Handle(Hdf5Handle&& other) noexcept
    : id_(std::exchange(other.id_, -1)), close_(other.close_) {}

Hdf5Handle& Hdf5Handle::operator=(Hdf5Handle&& other) noexcept {
  if (this != &other) {
    reset();
    id_ = std::exchange(other.id_, -1);
    close_ = other.close_;
  }
  return *this;
}

bool Hdf5Handle::closed() { return id_ < 0 || close_(std::exchange(id_, -1)) >= 0; }

Hdf5Writer::Hdf5Writer(const std::string& path) : path_(path), whole_(path) {
  const Silence silence;
  // From this format on HDF5 keeps a checksum of everything but the elements, so that its decoders
  // never see damaged headers: they trust the sizes in them (1.10.8).
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110);
  const Hdf5Handle how = timeless(H5P_FILE_CREATE);
  file_ = Hdf5Handle(H5Fcreate(whole_.partial().c_str(), H5F_ACC_TRUNC, how.get(), access.get()),
                     H5Fclose);
  if (!file_)
    throw OutputError(path_, "cannot be written",
                      "does its folder exist, and may you write there?");
}

void Hdf5Writer::group(const std::string& name) {
  const Silence silence;
  const Hdf5Handle how = timeless(H5P_GROUP_CREATE);
  const Hdf5Handle made(H5Gcreate2(file_.get(), name.c_str(), H5P_DEFAULT, how.get(), H5P_DEFAULT),
                        H5Gclose);
  if (!made) throw not_written(path_, name);
}

void Hdf5Writer::attribute(const std::string& object, const std::string& name,
                           const std::string& value) {
  const Hdf5Handle type = text_type(value.size());
  // An empty text still holds one (zero) byte.
  if (!write_attribute(file_.get(), object, name, type.get(), value.c_str()))
    throw not_written(path_, name);
}

void Hdf5Writer::attribute(const std::string& object, const std::string& name, std::int64_t value) {
  if (!write_attribute(file_.get(), object, name, H5T_NATIVE_INT64, &value))
    throw not_written(path_, name);
}

void Hdf5Writer::write(const std::string& dataset, std::size_t rows, std::int64_t type,
                       const void* values, const std::string& unit) {
  const Silence silence;
  const hsize_t size = rows;
  const Hdf5Handle space(H5Screate_simple(1, &size, nullptr), H5Sclose);
  const Hdf5Handle how = timeless(H5P_DATASET_CREATE);
  if (rows > 0) {  // an empty column is not chunked, so not compressed
    const hsize_t chunk = std::min(size, chunk_rows);
    H5Pset_chunk(how.get(), 1, &chunk);
    H5Pset_shuffle(how.get());
    H5Pset_deflate(how.get(), deflate_level);
  }
  Hdf5Handle made(H5Dcreate2(file_.get(), dataset.c_str(), type, space.get(), H5P_DEFAULT,
                             how.get(), H5P_DEFAULT),
                  H5Dclose);
  if (!made) throw not_written(path_, dataset);
  if (rows > 0 && H5Dwrite(made.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
    throw not_written(path_, dataset);
  made.reset();
  attribute(dataset, "unit", unit);
}

void Hdf5Writer::column(const std::string& dataset, std::span<const double> values,
                        const std::string& unit) {
  write(dataset, values.size(), H5T_NATIVE_DOUBLE, values.data(), unit);
}

void Hdf5Writer::column(const std::string& dataset, std::span<const std::int64_t> values,
                        const std::string& unit) {
  write(dataset, values.size(), H5T_NATIVE_INT64, values.data(), unit);
}

void Hdf5Writer::column(const std::string& dataset, std::span<const std::string> values,
                        const std::string& unit) {
  std::size_t length = 1;
  for (const std::string& value : values) length = std::max(length, value.size());
  std::string cells(values.size() * length, '\0');
  for (std::size_t i = 0; i < values.size(); ++i)
    cells.replace(i * length, values[i].size(), values[i]);
  write(dataset, values.size(), text_type(length).get(), cells.data(), unit);
}

void Hdf5Writer::seal() {
  const Silence silence;
  const bool flushed = H5Fflush(file_.get(), H5F_SCOPE_LOCAL) >= 0;
  if (!file_.closed() || !flushed)
    throw OutputError(path_, "cannot be written", "is the disk full, or is this a folder?");
  whole_.seal();
}

void Hdf5Writer::finish() {
  seal();
  whole_.keep();
}

Hdf5Reader::Hdf5Reader(std::string path) : path_(std::move(path)) {
  const Silence silence;
  if (!std::filesystem::exists(path_)) fail("no such file");
  if (!std::filesystem::is_regular_file(path_)) fail("is no regular file");
  if (H5Fis_hdf5(path_.c_str()) <= 0)
    throw InputError(path_, "is not an HDF5 file", "make one with stepcast-calibrate import");
  file_ = Hdf5Handle(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (!file_)
    throw InputError(path_, "is truncated or damaged", "write it again with stepcast-calibrate");
}

void Hdf5Reader::fail(const std::string& what) const { throw InputError(path_, what); }

/// Nothing is read but this file: a link, or data kept elsewhere, may lead to a device or a pipe.
void Hdf5Reader::refuse_links(const std::string& object) const {
  for (std::size_t end = object.find('/', 1);; end = object.find('/', end + 1)) {
    const std::string part = object.substr(0, end);
    H5L_info_t link;
    if (part != "/" && H5Lget_info(file_.get(), part.c_str(), &link, H5P_DEFAULT) >= 0 &&
        link.type != H5L_TYPE_HARD)
      throw InputError(path_, part + " is a link", "store the data itself in this file");
    if (end == std::string::npos) return;
  }
}

bool Hdf5Reader::has(const std::string& object) const {
  const Silence silence;
  refuse_links(object);
  return H5Lexists(file_.get(), object.c_str(), H5P_DEFAULT) > 0;
}

bool Hdf5Reader::has_attribute(const std::string& object, const std::string& name) const {
  const Silence silence;
  refuse_links(object);
  return H5Aexists_by_name(file_.get(), object.c_str(), name.c_str(), H5P_DEFAULT) > 0;
}

std::string Hdf5Reader::text_attribute(const std::string& object, const std::string& name) const {
  const Silence silence;
  refuse_links(object);
  const std::string what = "attribute " + name + " of " + object;
  const Hdf5Handle attribute(
      H5Aopen_by_name(file_.get(), object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT),
      H5Aclose);
  if (!attribute) fail("lacks " + what);
  const Hdf5Handle type(H5Aget_type(attribute.get()), H5Tclose);
  if (H5Tget_class(type.get()) != H5T_STRING) fail(what + " is not text");
  if (H5Tis_variable_str(type.get()) > 0) {  // as h5py writes a str
    char* text = nullptr;
    const Hdf5Handle memory(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(memory.get(), H5T_VARIABLE);
    H5Tset_cset(memory.get(), H5Tget_cset(type.get()));
    if (H5Aread(attribute.get(), memory.get(), &text) < 0 || text == nullptr)
      fail(what + " cannot be read");
    std::string value = text;
    H5free_memory(text);
    return value;
  }
  const std::size_t length = H5Tget_size(type.get());
  if (length == 0 || length > longest_text) fail(what + " is damaged");
  std::string cell(length, '\0');
  if (H5Aread(attribute.get(), type.get(), cell.data()) < 0) fail(what + " cannot be read");
  return trimmed(cell.data(), cell.size());
}

std::int64_t Hdf5Reader::integer_attribute(const std::string& object,
                                           const std::string& name) const {
  const Silence silence;
  refuse_links(object);
  const std::string what = "attribute " + name + " of " + object;
  const Hdf5Handle attribute(
      H5Aopen_by_name(file_.get(), object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT),
      H5Aclose);
  if (!attribute) fail("lacks " + what);
  const Hdf5Handle type(H5Aget_type(attribute.get()), H5Tclose);
  std::int64_t value = 0;
  if (H5Tget_class(type.get()) != H5T_INTEGER ||
      H5Aread(attribute.get(), H5T_NATIVE_INT64, &value) < 0)
    fail(what + " is not an integer");
  return value;
}

Hdf5Handle Hdf5Reader::open_column(const std::string& dataset, int type_class,
                                   std::size_t& rows) const {
  refuse_links(dataset);
  Hdf5Handle opened(H5Dopen2(file_.get(), dataset.c_str(), H5P_DEFAULT), H5Dclose);
  if (!opened) fail("lacks the column " + dataset);
  const Hdf5Handle properties(H5Dget_create_plist(opened.get()), H5Pclose);
  const bool elsewhere = H5Pget_external_count(properties.get()) != 0;
  if (elsewhere || H5Pget_layout(properties.get()) == H5D_VIRTUAL)
    throw InputError(path_, "column " + dataset + " lies in another file",
                     "store the data itself in this file");
  const Hdf5Handle type(H5Dget_type(opened.get()), H5Tclose);
  if (H5Tget_class(type.get()) != type_class) fail("column " + dataset + " has the wrong type");
  const Hdf5Handle space(H5Dget_space(opened.get()), H5Sclose);
  hsize_t size = 0;
  if (H5Sget_simple_extent_ndims(space.get()) != 1 ||
      H5Sget_simple_extent_dims(space.get(), &size, nullptr) != 1 || size > most_rows)
    fail("column " + dataset + " is no list of values");
  rows = static_cast<std::size_t>(size);
  return opened;
}

/// The elements of a column as they lie in the file.
std::string Hdf5Reader::elements(const std::string& dataset, std::int64_t column, std::size_t rows,
                                 std::size_t element) const {
  try {
    return hdf5_elements(column, rows, element);
  } catch (const std::runtime_error& reason) {
    fail("column " + dataset + " " + reason.what());
  }
}

template <class Number>
std::vector<Number> Hdf5Reader::numbers(const std::string& dataset, int type_class,
                                        std::int64_t native) const {
  const Silence silence;
  std::size_t rows = 0;
  const Hdf5Handle column = open_column(dataset, type_class, rows);
  const Hdf5Handle type(H5Dget_type(column.get()), H5Tclose);
  const std::size_t element = H5Tget_size(type.get());
  if (element == 0 || element > longest_number) fail("column " + dataset + " is damaged");
  std::string cells = elements(dataset, column.get(), rows, element);
  cells.resize(rows * std::max(element, sizeof(Number)));  // converted in place
  if (rows > 0 && H5Tconvert(type.get(), native, rows, cells.data(), nullptr, H5P_DEFAULT) < 0)
    fail("column " + dataset + " is damaged");
  std::vector<Number> values(rows);
  if (rows > 0) std::memcpy(values.data(), cells.data(), rows * sizeof(Number));
  return values;
}

std::vector<double> Hdf5Reader::doubles(const std::string& dataset) const {
  return numbers<double>(dataset, H5T_FLOAT, H5T_NATIVE_DOUBLE);
}

std::vector<std::int64_t> Hdf5Reader::integers(const std::string& dataset) const {
  return numbers<std::int64_t>(dataset, H5T_INTEGER, H5T_NATIVE_INT64);
}

std::vector<std::string> Hdf5Reader::texts(const std::string& dataset) const {
  const Silence silence;
  std::size_t rows = 0;
  const Hdf5Handle column = open_column(dataset, H5T_STRING, rows);
  const Hdf5Handle type(H5Dget_type(column.get()), H5Tclose);
  if (H5Tis_variable_str(type.get()) > 0)
    throw InputError(path_, "column " + dataset + " holds words of variable length",
                     "write them with a fixed length");
  const std::size_t length = H5Tget_size(type.get());
  if (length == 0 || length > longest_text) fail("column " + dataset + " is damaged");
  const std::string cells = elements(dataset, column.get(), rows, length);
  std::vector<std::string> values;
  values.reserve(rows);
  for (std::size_t i = 0; i < rows; ++i)
    values.push_back(trimmed(cells.data() + i * length, length));
  return values;
}

}  // namespace stepcast::sim
