// Files of columns (column_file.hpp) as HDF5: small RAII over the C API. Part of the module that is
// loaded when such a file is first wanted; the rest of the program does without HDF5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/files/whole_file.hpp"
#include "sim/tables/column_file.hpp"

namespace stepcast::sim {

/// An open HDF5 identifier and how to close it. Ids are hid_t, which is a 64-bit integer.
class Hdf5Handle {
 public:
  using Close = int (*)(std::int64_t);
  Hdf5Handle() = default;
  Hdf5Handle(std::int64_t id, Close close) : id_(id), close_(close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept;
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept;
  ~Hdf5Handle() { closed(); }

  std::int64_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }
  void reset() { closed(); }
  /// Closes it; false where that fails.
  bool closed();

 private:
  std::int64_t id_ = -1;
  Close close_ = nullptr;
};

/// A file that appears whole with finish(). Columns are compressed (shuffle, deflate).
class Hdf5Writer final : public ColumnWriter {
 public:
  explicit Hdf5Writer(const std::string& path);
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;

  void group(const std::string& name) override;
  void attribute(const std::string& object, const std::string& name,
                 const std::string& value) override;
  void attribute(const std::string& object, const std::string& name, std::int64_t value) override;
  void column(const std::string& dataset, std::span<const double> values,
              const std::string& unit) override;
  void column(const std::string& dataset, std::span<const std::int64_t> values,
              const std::string& unit) override;
  void column(const std::string& dataset, std::span<const std::string> values,
              const std::string& unit) override;
  void finish() override;
  void seal() override;
  WholeFile& file() override { return whole_; }

 private:
  void write(const std::string& dataset, std::size_t rows, std::int64_t type, const void* values,
             const std::string& unit);

  std::string path_;
  WholeFile whole_;
  Hdf5Handle file_;
};

class Hdf5Reader final : public ColumnReader {
 public:
  explicit Hdf5Reader(std::string path);

  const std::string& path() const override { return path_; }
  bool has(const std::string& object) const override;
  bool has_attribute(const std::string& object, const std::string& name) const override;
  std::string text_attribute(const std::string& object, const std::string& name) const override;
  std::int64_t integer_attribute(const std::string& object, const std::string& name) const override;
  std::vector<double> doubles(const std::string& dataset) const override;
  std::vector<std::int64_t> integers(const std::string& dataset) const override;
  std::vector<std::string> texts(const std::string& dataset) const override;

 private:
  [[noreturn]] void fail(const std::string& what) const;
  void refuse_links(const std::string& object) const;
  Hdf5Handle open_column(const std::string& dataset, int type_class, std::size_t& rows) const;
  std::string elements(const std::string& dataset, std::int64_t column, std::size_t rows,
                       std::size_t element) const;
  template <class Number>
  std::vector<Number> numbers(const std::string& dataset, int type_class,
                              std::int64_t native) const;

  std::string path_;
  Hdf5Handle file_;
};

}  // namespace stepcast::sim
