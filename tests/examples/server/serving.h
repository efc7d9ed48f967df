// What the tests of the server share: models, a gate that holds runs, a server of one of the
// models, clients.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <nlohmann/json.hpp>

#include "examples/server/server.h"
#include "graph/ir/builder.h"
#include "tests/examples/server/metrics_lines.h"

namespace eddy::server {

using Json = nlohmann::json;

// Runs wait here until it is opened.
class Gate {
 public:
  void open() {
    const std::scoped_lock lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    ++num_entered_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_; });
  }
  void await_entered(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return num_entered_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
  int num_entered_ = 0;
};

// Until the condition holds; the test's own time limit is the only one.
inline void await(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// y = a + b, floats [batch, 2].
inline void build_adding(GraphBuilder& b) {
  const ValueType rows = tensor_type(ElementType::kFloat, {b.symbol("batch"), 2});
  const Value a = b.input("a", rows);
  b.output("y", b.op("Add", {a, b.input("b", rows)}));
}
// Passes the gate.
inline void build_gated(GraphBuilder& b) {
  const Value n = b.input("n", tensor_type(ElementType::kInt64, {}));
  b.output("y", b.op("HostPredicate", {n}, {{"name", std::string("gate")}}, {.domain = "eddy"}));
}
// Counts n down to zero; endless where n is no whole number.
inline void build_countdown(GraphBuilder& b) {
  const auto end = b.while_loop(
      {.name = "countdown", .initial = {b.input("n", tensor_type(ElementType::kDouble, {}))}},
      [&](Value, ValueSpan n) {
        return WhileTest{b.op("Not", {b.op("Equal", {n[0], b.scalar(0.0)})}), {n[0]}};
      },
      [&](Value, ValueSpan n) {
        return std::vector<Value>{b.op("Sub", {n[0], b.scalar(1.0)})};
      });
  b.output("end", end[0]);
}

class ServingTest : public ::testing::Test {
 protected:
  ServingTest() {
    const Status status =
        library_.add_host_function("gate", [this](std::span<const TensorView>) -> Result<int64_t> {
          gate_.pass();
          return 1;
        });
    EXPECT_TRUE(status.is_ok()) << status.to_string();
    session_options_.num_threads = 2;
    // No test waits for one of these to pass.
    server_options_.http.idle_timeout = std::chrono::hours(1);
    server_options_.http.read_timeout = std::chrono::hours(1);
    server_options_.http.write_timeout = std::chrono::hours(1);
  }
  ~ServingTest() override { gate_.open(); }

  void start(const std::function<void(GraphBuilder&)>& build) {
    GraphBuilder builder(library_.ops());
    build(builder);
    Result<Graph> graph = builder.finish();
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    auto session = Session::create(library_, std::move(*graph), session_options_);
    ASSERT_TRUE(session.is_ok()) << session.status().to_string();
    auto server = ModelServer::start(std::move(*session), server_options_);
    ASSERT_TRUE(server.is_ok()) << server.status().to_string();
    server_ = std::move(*server);
  }

  httplib::Client client() const {
    httplib::Client client("127.0.0.1", server_->port());
    client.set_tcp_nodelay(true);
    client.set_read_timeout(std::chrono::hours(1));
    return client;
  }
  httplib::Result post(const std::string& body) const {
    return client().Post("/v1/run", body, "application/json");
  }
  std::map<std::string, double> metrics() const {
    const auto page = client().Get("/metrics");
    EXPECT_TRUE(page && page->status == 200);
    return page ? metrics_lines(page->body) : std::map<std::string, double>();
  }
  // The answer is of this code, and of JSON with an error that holds the words.
  static void expect_error(const httplib::Result& answer, int code, const std::string& words) {
    ASSERT_TRUE(answer) << httplib::to_string(answer.error());
    EXPECT_EQ(answer->status, code) << answer->body;
    EXPECT_EQ(answer->get_header_value("Content-Type"), "application/json");
    const Json json = Json::parse(answer->body, nullptr, false);
    ASSERT_TRUE(json.is_object()) << answer->body;
    EXPECT_THAT(json["error"].get<std::string>(), ::testing::HasSubstr(words));
    EXPECT_EQ(answer->has_header("Retry-After"), code == 503);
  }

  Library library_;
  Gate gate_;
  SessionOptions session_options_;
  ServerOptions server_options_;
  std::unique_ptr<ModelServer> server_;
};

}  // namespace eddy::server
