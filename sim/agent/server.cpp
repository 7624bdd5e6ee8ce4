#include "sim/agent/server.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <utility>

#include "sim/files/json_text.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/processes/child.hpp"

namespace stepcast::sim {
namespace {

using Json = nlohmann::ordered_json;

/// Of the protocol; the newest first. https://modelcontextprotocol.io/specification
constexpr std::string_view protocol_versions[] = {"2025-06-18", "2025-03-26", "2024-11-05"};

/// Of JSON-RPC 2.0, section 5.1.
constexpr int parse_error = -32700, invalid_request = -32600, unknown_method = -32601,
              invalid_params = -32602;

constexpr std::size_t longest_message = 4 << 20, most_waiting = 1000;

/// Answers to the messages of one line; those of a batch go out together.
struct Batch {
  bool is_list = false;
  std::size_t open = 0;
  Json answers = Json::array();
};
using Batches = std::shared_ptr<Batch>;

/// Who is answered.
struct Caller {
  Json id;
  Batches batch;
};

struct Call {
  Caller caller;
  const AgentTool* tool;
  std::vector<std::string> words;
};

struct Running {
  Call call;
  Child child;
  std::string printed{};
};

void print_line(const Json& message) {
  tell(stdout, json_text(message) + "\n");
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw OutputError("standard output", "cannot be written", "the client is gone");
}

Json error_answer(const Json& id, int code, const std::string& what) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", code}, {"message", what}}}};
}

bool is_id(const Json& id) { return id.is_string() || id.is_number(); }

class Server {
 public:
  explicit Server(const AgentServer& own) : own_(own) {}

  void serve() {
    while (!ended_ || !running_.empty() || !waiting_.empty()) {
      start_waiting();
      wait();
    }
  }

 private:
  void wait() {
    std::vector<pollfd> polled;
    for (const Running& one : running_) polled.push_back({one.child.channel().number(), POLLIN, 0});
    polled.push_back({ended_ ? -1 : STDIN_FILENO, POLLIN, 0});
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) {
      ended_ = true;
      return;
    }
    std::size_t at = 0;
    for (auto one = running_.begin(); one != running_.end(); ++at) {
      const auto next = std::next(one);
      if (polled[at].revents != 0) read_from(one);
      one = next;
    }
    if (polled.back().revents != 0) read_messages();
  }

  void read_from(std::list<Running>::iterator one) {
    char buffer[1 << 16];
    const ssize_t count = read(one->child.channel().number(), buffer, sizeof buffer);
    if (count > 0) return one->printed.append(buffer, static_cast<std::size_t>(count)), void();
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    one->child.wait();
    const std::optional<int> status = one->child.status();
    const std::optional<int> code =
        status && WIFEXITED(*status) ? std::optional(WEXITSTATUS(*status)) : std::nullopt;
    const Call call = std::move(one->call);
    const Json result = result_of_call(*call.tool, one->printed, code);
    running_.erase(one);
    answer(call.caller, result);
  }

  void start_waiting() {
    while (running_.size() < own_.at_once && !waiting_.empty()) {
      Call call = std::move(waiting_.front());
      waiting_.pop_front();
      std::vector<std::string> words{own_.program};
      words.insert(words.end(), call.words.begin(), call.words.end());
      // Of a verb that prints text, what is wrong stands on standard error.
      const bool is_text = call.tool->output.is_null();
      try {
        Child child({.words = words,
                     .in = Stream::nowhere,
                     .out = Stream::channel,
                     .errors = is_text ? Stream::channel : Stream::nowhere,
                     .apart = true,
                     .ends_with_parent = true});
        running_.push_back({std::move(call), std::move(child)});
      } catch (const InputError& error) {
        answer(call.caller, failed_call(error.what()));
      }
    }
  }

  void read_messages() {
    char buffer[1 << 16];
    const ssize_t count = read(STDIN_FILENO, buffer, sizeof buffer);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (count <= 0) {
      ended_ = true;
      if (!begun_.empty()) take_line(std::exchange(begun_, {}));
      return;
    }
    begun_.append(buffer, static_cast<std::size_t>(count));
    std::size_t from = 0;
    for (std::size_t end; (end = begun_.find('\n', from)) != std::string::npos; from = end + 1)
      take_line(begun_.substr(from, end - from));
    begun_.erase(0, from);
    if (begun_.size() > longest_message) skip_line();
  }

  /// What is longer is no message.
  void skip_line() {
    if (!skipping_)
      print_line(error_answer(nullptr, invalid_request,
                              fmt::format("a message of more than {} bytes", longest_message)));
    skipping_ = true;
    begun_.clear();
  }

  void take_line(const std::string& line) {
    if (std::exchange(skipping_, false)) return;
    if (line.find_first_not_of(" \t\r") == std::string::npos) return;
    const Json message = ordered_json_or_discarded(line);
    if (message.is_discarded())
      return print_line(error_answer(nullptr, parse_error, "the line is no JSON"));
    const auto batch = std::make_shared<Batch>();
    if (!message.is_array()) return take(message, batch);
    if (message.empty())
      return print_line(error_answer(nullptr, invalid_request, "the list is empty"));
    batch->is_list = true;
    batch->open = 1;  // until all of it is read
    for (const Json& one : message) take(one, batch);
    close(batch);
  }

  void take(const Json& message, const Batches& batch) {
    const auto text_at = [&](const char* key) {
      return message.is_object() && message.contains(key) && message[key].is_string()
                 ? message[key].get<std::string>()
                 : std::string();
    };
    const bool has_id = message.is_object() && message.contains("id");
    const std::string method = text_at("method");
    if (text_at("jsonrpc") != "2.0" || (method.empty() && !has_id) ||
        (has_id && !is_id(message["id"]))) {
      batch->open += 1;
      return send({nullptr, batch},
                  error_answer(nullptr, invalid_request, "no request of JSON-RPC 2.0"));
    }
    if (method.empty()) return;  // an answer: nothing was asked
    const Json params = message.contains("params") ? message["params"] : Json::object();
    if (!has_id) return take_notification(method, params);
    batch->open += 1;
    take_request({message["id"], batch}, method, params);
  }

  void take_notification(const std::string& method, const Json& params) {
    if (method != "notifications/cancelled" || !params.is_object() || !params.contains("requestId"))
      return;
    const Json& id = params["requestId"];
    const auto asked = [&](const Call& call) { return call.caller.id == id; };
    for (auto one = waiting_.begin(); one != waiting_.end(); ++one)
      if (asked(*one)) {
        const Batches batch = one->caller.batch;
        waiting_.erase(one);
        return close(batch);
      }
    for (auto one = running_.begin(); one != running_.end(); ++one)
      if (asked(one->call)) {
        const Batches batch = one->call.caller.batch;
        running_.erase(one);  // which ends it
        return close(batch);
      }
  }

  void take_request(const Caller& caller, const std::string& method, const Json& params) {
    if (method == "initialize") return answer(caller, initialized(params));
    if (method == "ping") return answer(caller, Json::object());
    if (method == "tools/list") return answer(caller, listed());
    if (method == "tools/call") return call_tool(caller, params);
    send(caller, error_answer(caller.id, unknown_method, "no method '" + method + "'"));
  }

  Json initialized(const Json& params) const {
    std::string version(protocol_versions[0]);
    if (params.is_object() && params.contains("protocolVersion"))
      for (const std::string_view known : protocol_versions)
        if (params["protocolVersion"] == std::string(known)) version = known;
    return {
        {"protocolVersion", version},
        {"capabilities", {{"tools", Json::object()}}},
        {"serverInfo", {{"name", "stepcast"}, {"title", "stepcast"}, {"version", own_.version}}},
        {"instructions", own_.instructions}};
  }

  Json listed() const {
    Json tools = Json::array();
    for (const AgentTool& tool : own_.tools) tools.push_back(tool_json(tool));
    return {{"tools", std::move(tools)}};
  }

  void call_tool(const Caller& caller, const Json& params) {
    const bool named = params.is_object() && params.contains("name") && params["name"].is_string();
    const std::string name = named ? params["name"].get<std::string>() : "";
    const auto tool =
        std::ranges::find(own_.tools, name, [](const AgentTool& one) { return one.verb.word(); });
    if (tool == own_.tools.end())
      return send(caller, error_answer(caller.id, invalid_params, "no tool '" + name + "'"));
    if (waiting_.size() >= most_waiting)
      return answer(caller, failed_call(fmt::format("{} calls wait already", most_waiting)));
    try {
      const Json arguments = params.contains("arguments") ? params["arguments"] : Json::object();
      waiting_.push_back({caller, &*tool, words_of_call(*tool, arguments)});
    } catch (const UsageError& error) {
      answer(caller, failed_call(error.what()));
    }
  }

  void answer(const Caller& caller, const Json& result) {
    send(caller, {{"jsonrpc", "2.0"}, {"id", caller.id}, {"result", result}});
  }

  void send(const Caller& caller, const Json& message) {
    if (caller.batch->is_list)
      caller.batch->answers.push_back(message);
    else
      print_line(message);
    close(caller.batch);
  }

  /// One answer less is open.
  static void close(const Batches& batch) {
    batch->open -= 1;
    if (batch->is_list && batch->open == 0 && !batch->answers.empty()) print_line(batch->answers);
  }

  const AgentServer& own_;
  std::list<Running> running_;
  std::deque<Call> waiting_;
  std::string begun_;
  bool ended_ = false, skipping_ = false;
};

}  // namespace

void serve_agent(const AgentServer& server) { Server(server).serve(); }

}  // namespace stepcast::sim
