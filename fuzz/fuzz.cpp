// stepcast_fuzz READER [libFuzzer options and corpus folders]: one harness per reader.
#include <cstdio>
#include <string>
#include <vector>

#include "fuzz/readers.hpp"

extern "C" int LLVMFuzzerRunDriver(int* argc, char*** argv,
                                   int (*user)(const std::uint8_t* data, std::size_t size));

/// HDF5 does not free all that it had of a file that it refuses.
extern "C" const char* __lsan_default_suppressions();  // what LeakSanitizer asks for
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5\n"; }

namespace {

const stepcast::fuzz::Reader* reader = nullptr;

int feed_one(const std::uint8_t* data, std::size_t size) {
  stepcast::fuzz::feed(*reader, {data, size});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  reader = argc < 2 ? nullptr : stepcast::fuzz::find_reader(argv[1]);
  if (reader == nullptr) {
    std::fprintf(stderr, "usage: stepcast_fuzz READER [libFuzzer options and corpus folders]\n");
    return 2;
  }
  std::vector<char*> words{argv[0]};
  words.insert(words.end(), argv + 2, argv + argc);
  int count = static_cast<int>(words.size());
  words.push_back(nullptr);
  char** first = words.data();
  return LLVMFuzzerRunDriver(&count, &first, feed_one);
}
