#include "calibrate/import/nccl_tests_log.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>

#include "calibrate/rows/numbers.hpp"

namespace stepcast::calibrate {
namespace {

bool starts_with_size(const std::string& line) {
  const auto words = words_of(line.substr(0, 40));
  return !words.empty() && number_in<std::int64_t>(words[0]).has_value();
}

/// The text behind `mark`, without blanks around it.
std::optional<std::string> after(const std::string& line, std::string_view mark) {
  const std::size_t at = line.find(mark);
  if (at == std::string::npos) return std::nullopt;
  const std::size_t first = line.find_first_not_of(' ', at + mark.size());
  if (first == std::string::npos) return std::string();
  return line.substr(first, line.find_last_not_of(' ') + 1 - first);
}

/// The word behind `mark`.
std::string word_after(const std::string& line, std::string_view mark) {
  const auto words = words_of(after(line, mark).value_or(""));
  return words.empty() ? std::string() : words.front();
}

/// Without the '#' and blanks before it: pastes through markdown and mail lose or change them.
std::string content_of(const std::string& line) {
  return line.substr(std::min(line.find_first_not_of(" \t#"), line.size()));
}

bool is_nthread(const std::string& content) {
  return content.starts_with("nThread ") && content.find(" nGpus ") != std::string::npos;
}
bool is_table_header(const std::string& content) {
  return content.starts_with("size ") && content.find(" algbw ") != std::string::npos;
}

/// "...": rows that whoever pasted the table left out.
bool is_elision(const std::string& content) {
  const auto words = words_of(content);
  return !words.empty() && std::all_of(words.begin(), words.end(), [](const std::string& word) {
    return word == "..." || word == "[...]" || word == "(...)" || word == "\u2026" ||
           word == "....";
  });
}

/// What stands before nccl-tests' own text on every line: "> " of a mail, "node07: " of pdsh,
/// "[pod/launcher/mpi] " of kubectl. As the first line shows that only nccl-tests prints.
std::string common_prefix(const std::vector<TextLine>& lines) {
  for (const TextLine& line : lines)
    for (const std::string_view mark : {"nThread ", "nccl-tests version ", "size "}) {
      const std::size_t at = line.text.find(mark);
      if (at == std::string::npos || line.text.find("NCCL INFO") != std::string::npos) continue;
      const std::string rest = line.text.substr(at);
      if (!is_nthread(rest) && !is_table_header(rest) && !rest.starts_with("nccl-tests version "))
        continue;
      const std::string before = line.text.substr(0, at);
      return before.substr(0, before.find_last_not_of(" \t#") + 1);
    }
  return {};
}

std::vector<TextLine> without_prefix(std::vector<TextLine> lines) {
  const std::string prefix = common_prefix(lines);
  if (!prefix.empty())
    for (TextLine& line : lines)
      if (line.text.starts_with(prefix)) line.text.erase(0, prefix.size());
  return lines;
}

/// A number, and half of its last printed digit.
std::optional<NcclTestsNumber> printed_number(const std::string& word) {
  const auto value = number_in<double>(word);
  if (!value || *value < 0) return std::nullopt;
  const std::size_t point = word.find('.');
  const auto decimals = point == std::string::npos ? 0 : word.size() - point - 1;
  return NcclTestsNumber{*value, 0.5 * std::pow(10.0, -static_cast<double>(decimals))};
}

/// Reads the lines one after the other; a run ends where the next one begins.
class LogReader {
 public:
  LogReader(const TextFile& file, Ignored& ignored) : file_(file), ignored_(ignored) {}

  std::vector<NcclTestsRun> read() {
    for (const TextLine& line : without_prefix(file_.lines)) read(line);
    finish_run();
    if (runs_.empty())
      file_.fail(1, "is no log of nccl-tests",
                 "its table begins with '# size count type ... algbw busbw'");
    return std::move(runs_);
  }

 private:
  void read(const TextLine& line) {
    const std::string& text = line.text;
    if (text.find("NCCL INFO") != std::string::npos || text.find("NCCL WARN") != std::string::npos)
      return ignored_.add(nccl_line, line.number);
    if (own_line(line)) return;
    const std::size_t first = text.find_first_not_of(" \t");
    if (first == std::string::npos || text[first] == '#') return;
    if (const auto version = nccl_in_text(text))
      said_version(*version);
    else if (!runs_.empty() && !measures_.empty() && starts_with_size(text))
      row(line);
    else if (is_elision(text))
      elided(line);
    else
      ignored_.add("a line of other programs", line.number);
  }

  /// Reads what nccl-tests says in its comments; false for any other line.
  bool own_line(const TextLine& line) {
    const std::string content = content_of(line.text);
    if (content.starts_with("nccl-tests version ")) {
      finish_run();
      const auto code = number_in<std::int64_t>(word_after(content, "nccl-library="));
      if (code) next_nccl_ = nccl_of_code(*code).value_or("");
    } else if (const auto program = after(content, "Collective test starting:")) {
      finish_run();
      next_program_ = *program;
    } else if (is_nthread(content)) {
      begin_run(line);
    } else if (content.starts_with("Rank ") && content.find(" on ") != std::string::npos &&
               content.find(" device ") != std::string::npos) {
      device(line);
    } else if (is_table_header(content)) {
      header(line);
    } else if (content.starts_with("Out of bounds values")) {
      if (content.find("OK") == std::string::npos)
        file_.fail(line.number, "nccl-tests found wrong results",
                   "a run that computes wrongly measures nothing");
      complete_ = true;
    } else if (content.starts_with("Avg bus bandwidth")) {
      complete_ = true;
    } else if (line.text.starts_with("# error:")) {
      file_.fail(line.number,
                 "the run failed: " + after(line.text, "# error:").value_or("").substr(0, 100));
    } else {
      return false;
    }
    return true;
  }

  void elided(const TextLine& line) {
    if (!runs_.empty()) elided_ = true;
    ignored_.note("leaves rows out ('...'); the others are read", line.number);
  }

  void begin_run(const TextLine& line) {
    finish_run();
    NcclTestsRun& run = add_run(line);
    complete_ = false;
    const auto threads = number_in<std::int64_t>(word_after(line.text, "nThread "));
    const auto gpus = number_in<std::int64_t>(word_after(line.text, "nGpus "));
    if (!threads || !gpus || *threads < 1 || *gpus < 1 || *threads > 1024 || *gpus > 1024)
      file_.fail(line.number, "nThread and nGpus are not small numbers");
    run.gpus_per_process = *threads * *gpus;
    if (const auto graphs = word_after(line.text, "graph: "); !graphs.empty() && graphs != "0")
      ignored_.add("that the calls ran as a CUDA graph", line.number);
  }

  NcclTestsRun& add_run(const TextLine& line) {
    measures_.clear();
    elided_ = false;
    NcclTestsRun run;
    run.path = file_.path;
    run.line = line.number;
    run.program = std::exchange(next_program_, {});
    run.nccl = std::exchange(next_nccl_, {});
    runs_.push_back(std::move(run));
    return runs_.back();
  }

  /// A table that was pasted without its head is a run of its own; nor has it last lines to wait
  /// for.
  void begin_without_head(const TextLine& line) {
    if (!runs_.empty() && (!complete_ || runs_.back().rows.empty())) return;
    add_run(line);
    ignored_.note("has no head ('# nThread ...'): what it does not say comes from the options",
                  line.number);
  }

  void finish_run() {
    if (runs_.empty() || complete_ || elided_) return;
    file_.fail(file_.lines.back().number,
               "the run of line " + std::to_string(runs_.back().line) +
                   " has no last lines ('# Avg bus bandwidth')",
               "was the log cut, or did the run die?");
  }

  void said_version(const std::string& version) {
    if (!runs_.empty() && runs_.back().nccl.empty())
      runs_.back().nccl = version;
    else if (runs_.empty())
      next_nccl_ = version;
  }

  /// "#  Rank  0 Group  0 Pid  62767 on  node0 device  0 [0000:19:00] NVIDIA H100 80GB HBM3"; older
  /// versions have no Group.
  void device(const TextLine& line) {
    begin_without_head(line);
    const std::string& text = line.text;
    NcclTestsDevice device;
    device.line = line.number;
    const auto rank = number_in<std::int64_t>(word_after(text, "Rank "));
    const auto group = number_in<std::int64_t>(word_after(text, " Group "));
    device.host = word_after(text, " on ");
    const std::size_t bracket = text.find(']');
    if (!rank || *rank < 0 || *rank > 1'000'000 || device.host.empty() ||
        bracket == std::string::npos)
      file_.fail(line.number, "is no line of a device",
                 "expected '#  Rank 0 Group 0 Pid 1 on HOST device 0 [0x19] NAME'");
    device.rank = *rank;
    device.group = group.value_or(0);
    device.process = word_after(text, " Pid ") + "@" + device.host;
    device.gpu = after(text.substr(bracket), "]").value_or("");
    runs_.back().devices.push_back(std::move(device));
  }

  /// Keeps the labels from the first time on: what stands before them varies with the version.
  void header(const TextLine& line) {
    begin_without_head(line);
    measures_.clear();
    for (std::string word : words_of(content_of(line.text))) {
      word.erase(0, word.find_first_not_of('#'));  // "#wrong" or, pasted through markdown, "wrong"
      if (word == "cputime")
        file_.fail(line.number, "the times are those of the launches alone (-C)",
                   "measure without -C");
      if (!measures_.empty() || word == "time") measures_.push_back(word);
    }
    const auto times = std::count(measures_.begin(), measures_.end(), "time");
    if (times < 1 || times > 2)
      file_.fail(line.number, "a table without a column 'time'", "was the line edited?");
    if (std::count(measures_.begin(), measures_.end(), "i_min") > 0)
      ignored_.add("the times of single iterations", line.number);
  }

  void row(const TextLine& line) {
    auto words = words_of(line.text);
    if (measures_.back() == "timestamp" && words.size() > measures_.size())
      words.pop_back();  // date and time of day are two words under one label
    const std::size_t measures = measures_.size();
    // Before them: size, count, type; and as the version has them redop and root.
    if (words.size() < measures + 3 || words.size() > measures + 5)
      file_.fail(line.number,
                 std::to_string(words.size()) + " columns do not fit the table's header",
                 "was the line edited or cut?");
    NcclTestsRow row;
    row.line = line.number;
    const auto bytes = number_in<std::int64_t>(words[0]);
    if (!bytes || *bytes < 0) file_.fail(line.number, "size '" + words[0] + "' is no size");
    row.bytes = *bytes;
    row.type = words[2];
    const std::size_t first = words.size() - measures;
    const auto second = std::find(measures_.begin() + 1, measures_.end(), "time");
    row.out_of_place = figure(line.number, row.bytes, words, first, 0);
    if (second != measures_.end())
      row.in_place = figure(line.number, row.bytes, words, first,
                            static_cast<std::size_t>(second - measures_.begin()));
    runs_.back().rows.push_back(std::move(row));
  }

  /// time algbw busbw #wrong, from column `at` of the measures on.
  NcclTestsFigure figure(std::int64_t line, std::int64_t bytes,
                         const std::vector<std::string>& words, std::size_t first,
                         std::size_t at) const {
    if (at + 4 > measures_.size() || measures_[at + 1] != "algbw" || measures_[at + 2] != "busbw")
      file_.fail(line, "the table's columns are not time, algbw, busbw, #wrong");
    const auto number = [&](std::size_t column) {
      const std::string& word = words[first + column];
      const auto value = printed_number(word);
      if (!value)
        file_.fail(line, measures_[column] + " '" + word + "' is no number",
                   "was the line edited or cut?");
      return *value;
    };
    NcclTestsFigure figure;
    figure.time_us = number(at);
    // Beyond 10^12 us a picosecond clock overflows, and no collective runs for days.
    if (bytes > 0 && (figure.time_us.value <= 0 || figure.time_us.value > 1e12))
      file_.fail(line, "a time of " + words[first + at] + " us");
    figure.algbw = number(at + 1);
    figure.busbw = number(at + 2);
    // Old versions print the largest deviation as "error" there; rounding is no mistake.
    if (measures_[at + 3] == "wrong" && words[first + at + 3] != "N/A")
      figure.wrong = number(at + 3).value;
    return figure;
  }

  const TextFile& file_;
  Ignored& ignored_;
  std::vector<NcclTestsRun> runs_;
  std::vector<std::string> measures_;  // labels of the table from the first time on
  std::string next_program_, next_nccl_;
  bool complete_ = true, elided_ = false;
};

}  // namespace

bool is_nccl_tests_log(const TextFile& file) {
  const std::vector<TextLine> lines = without_prefix(file.lines);
  return std::any_of(lines.begin(), lines.end(), [](const TextLine& line) {
    const std::string content = content_of(line.text);
    return is_nthread(content) || is_table_header(content) ||
           content.starts_with("nccl-tests version ") ||
           content.starts_with("Collective test starting");
  });
}

std::vector<NcclTestsRun> parse_nccl_tests_log(const TextFile& file, Ignored& ignored) {
  return LogReader(file, ignored).read();
}

}  // namespace stepcast::calibrate
