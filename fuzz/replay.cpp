// stepcast_replay READER FILE|FOLDER ...: hands kept inputs to a reader; `--list` prints the names.
// Whatever ends it otherwise than with 0 is a fault of the reader.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/readers.hpp"

namespace {

namespace fs = std::filesystem;
using namespace stepcast;

int replay(const fuzz::Reader& reader, const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
  std::fprintf(stderr, "%s\n", file.c_str());  // the last one printed is the one that failed
  fuzz::feed(reader, {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 1 && words[0] == "--list") {
    for (const fuzz::Reader& reader : fuzz::readers())
      std::printf("%.*s\n", static_cast<int>(reader.name.size()), reader.name.data());
    return 0;
  }
  const fuzz::Reader* reader = words.size() < 2 ? nullptr : fuzz::find_reader(words[0]);
  if (reader == nullptr) {
    std::fprintf(stderr, "usage: stepcast_replay --list | READER FILE|FOLDER ...\n");
    return 2;
  }
  int count = 0;
  for (std::size_t i = 1; i < words.size(); ++i)
    if (fs::is_directory(words[i]))
      for (const fs::directory_entry& entry : fs::directory_iterator(words[i]))
        count += replay(*reader, entry.path());
    else
      count += replay(*reader, words[i]);
  std::printf("%d inputs\n", count);
  return count > 0 ? 0 : 1;
}
