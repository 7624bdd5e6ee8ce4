// The flat form of a file of columns: its parts one after the other, numbers as this machine holds
// them. Made by the build from a table that HDF5 keeps; not for exchange between machines.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "sim/files/input_file.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/tables/column_file.hpp"

namespace stepcast::sim {

/// What a flat file begins with, of any version and of this.
inline constexpr std::string_view flat_name = "stepcast columns ",
                                  flat_magic = "stepcast columns 2\n";

class FlatWriter final : public ColumnWriter {
 public:
  explicit FlatWriter(const std::string& path);

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
  void text(std::string_view text);
  void number(std::uint64_t value);
  void begin(char kind, const std::string& name);

  WholeFile whole_;
  std::string bytes_;
};

class FlatReader final : public ColumnReader {
 public:
  explicit FlatReader(std::string path);

  const std::string& path() const override { return path_; }
  bool has(const std::string& object) const override { return parts_.contains(object); }
  bool has_attribute(const std::string& object, const std::string& name) const override;
  std::string text_attribute(const std::string& object, const std::string& name) const override;
  std::int64_t integer_attribute(const std::string& object, const std::string& name) const override;
  std::vector<double> doubles(const std::string& dataset) const override;
  std::vector<std::int64_t> integers(const std::string& dataset) const override;
  std::vector<std::string> texts(const std::string& dataset) const override;
  std::vector<TextRun> text_runs(const std::string& dataset) const override;

 private:
  struct Part {
    char kind;          // as FlatWriter wrote it
    std::size_t begin;  // of its values in bytes_
  };
  [[noreturn]] void fail(const std::string& what) const;
  std::uint64_t number(std::size_t& at) const;
  std::string_view text(std::size_t& at) const;
  std::string_view raw(std::size_t& at, std::uint64_t size) const;
  void index(std::size_t at);
  std::size_t begin_of(const std::string& name, char kind) const;
  template <class Number>
  std::vector<Number> numbers(const std::string& dataset, char kind) const;

  std::string path_;
  MappedInput file_;
  std::string_view bytes_;
  std::map<std::string, Part> parts_;  // attributes as "object@name"
};

}  // namespace stepcast::sim
