// stepcast_fuzz READER [libFuzzer options and corpus folders]: one harness per reader.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "fuzz/readers.hpp"
#include "sim/program/installation.hpp"
#include "sim/tables/hdf5_module.hpp"

extern "C" int LLVMFuzzerRunDriver(int* argc, char*** argv,
                                   int (*user)(const std::uint8_t* data, std::size_t size));

namespace {

const stepcast::fuzz::Reader* reader = nullptr;

int feed_one(const std::uint8_t* data, std::size_t size) {
  stepcast::fuzz::feed(*reader, {data, size});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // To merge corpora libFuzzer calls the program again, with its own options and folders alone.
  constexpr const char* inherited = "STEPCAST_FUZZ_READER";
  const char* above = std::getenv(inherited);
  const int own = above != nullptr ? 1 : 2;
  const char* name = above != nullptr ? above : argc > 1 ? argv[1] : "";
  reader = stepcast::fuzz::find_reader(name);
  if (reader == nullptr) {
    std::fprintf(stderr, "usage: stepcast_fuzz READER [libFuzzer options and corpus folders]\n");
    return 2;
  }
  // Without it the readers of HDF5 refuse every input at once, and a campaign tries nothing.
  const std::string hdf5 = stepcast::sim::shipped_library(stepcast::sim::hdf5_module_name);
  if (access(hdf5.c_str(), R_OK) != 0) {
    std::fprintf(stderr, "%s: not there, and HDF5 could not be read\n", hdf5.c_str());
    return 2;
  }
  setenv(inherited, std::string(name).c_str(), 1);
  std::vector<char*> words{argv[0]};
  words.insert(words.end(), argv + own, argv + argc);
  int count = static_cast<int>(words.size());
  words.push_back(nullptr);
  char** first = words.data();
  return LLVMFuzzerRunDriver(&count, &first, feed_one);
}
