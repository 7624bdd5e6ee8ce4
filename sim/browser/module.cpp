// The functions that the WebAssembly module offers to sim/browser/host.js: the program itself, and
// a session that stays. Words and answers pass through one buffer each, words end with a zero byte.
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>

#include "sim/resident/keeper.hpp"

extern "C" int __main_void();  // of WASI's C library: main() with the host's words

namespace stepcast::sim {
namespace {

struct Buffers {
  std::string words, told;
};

Buffers& buffers() {
  static Buffers each;
  return each;
}

Keeper& keeper() {
  static Keeper kept("/stepcast/stepcast");
  return kept;
}

Keeper::Words asked_words() {
  Keeper::Words out;
  const std::string& text = buffers().words;
  for (std::size_t at = 0; at < text.size();) {
    out.emplace_back(text.c_str() + at);
    at += out.back().size() + 1;
  }
  return out;
}

/// Its length; -1 for none.
int tell(std::optional<std::string> answer) {
  if (!answer) return -1;
  buffers().told = std::move(*answer);
  return static_cast<int>(buffers().told.size());
}

}  // namespace
}  // namespace stepcast::sim

extern "C" {

/// What `stepcast WORDS` does, once in an instance. Returns the exit code.
[[clang::export_name("program")]] int stepcast_program() {
  const int code = __main_void();
  std::fflush(nullptr);
  return code;
}

/// Where that many bytes of words are to be written.
[[clang::export_name("words")]] char* stepcast_words(int bytes) {
  std::string& words = stepcast::sim::buffers().words;
  words.assign(static_cast<std::size_t>(bytes), '\0');
  return words.data();
}

/// Where the answer lies until the next question.
[[clang::export_name("told")]] const char* stepcast_told() {
  return stepcast::sim::buffers().told.data();
}

/// Length of what the program prints for the words; -1: the program is to be asked.
[[clang::export_name("answer")]] int stepcast_answer() {
  using namespace stepcast::sim;
  return tell(keeper().answer(asked_words(), false));
}

/// Length of the reason why the words are refused when they are read; -1: they are not.
[[clang::export_name("refusal")]] int stepcast_refusal() {
  using namespace stepcast::sim;
  return tell(keeper().refusal(asked_words()));
}
}
