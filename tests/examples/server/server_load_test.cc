// Claim: what is too much is refused at once and nothing else is held up by it; clients beside each
// other get their own answers; a client that leaves takes its run with it; and a server that stops
// finishes what was begun, or cancels it.
#include <future>
#include <vector>

#include "tests/examples/server/raw_client.h"
#include "tests/examples/server/serving.h"

namespace eddy::server {
namespace {

using ::testing::HasSubstr;

std::string number(const std::string& n) { return R"({"inputs": {"n": )" + n + "}}"; }

class LoadTest : public ServingTest {
 protected:
  // Sends a run from a thread of its own.
  std::future<httplib::Result> send(const std::string& n) const {
    return std::async(std::launch::async, [this, n] { return post(number(n)); });
  }
  void await_in_flight(int64_t count) const {
    await([&] { return server_->metrics().num_in_flight() == count; });
  }
  // Until so many runs of the session wait for their turn.
  void await_waiting(int count) const {
    const std::string text = ", " + std::to_string(count) + " waiting";
    await([&] { return server_->session().describe_runs().find(text) != std::string::npos; });
  }
  // Until no connection is accepted any more.
  void await_closed() const {
    await([port = server_->port()] { return !RawClient(port).is_connected(); });
  }
};

TEST_F(LoadTest, ARunTooManyIsRefusedAndTheOthersAreServed) {
  session_options_.max_runs_in_flight = 1;
  session_options_.max_runs_waiting = 1;
  start(build_gated);
  auto first = send("1");
  gate_.await_entered(1);
  auto second = send("2");
  await_waiting(1);
  expect_error(post(number("3")), 503, "resource exhausted");
  // What needs no run is answered meanwhile.
  EXPECT_EQ(client().Get("/healthz")->status, 200);
  EXPECT_EQ(client().Get("/v1/model")->status, 200);
  expect_error(post("{"), 400, "no JSON");
  auto samples = metrics();
  EXPECT_EQ(samples["eddy_runs_in_flight"], 2);
  EXPECT_EQ(samples["eddy_run_duration_seconds_count"], 0);
  EXPECT_EQ(samples["eddy_http_requests_total{code=\"503\"}"], 1);
  gate_.open();
  for (auto* each : {&first, &second}) {
    const httplib::Result answer = each->get();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200) << answer->body;
  }
  EXPECT_EQ(post(number("4"))->status, 200);
  samples = metrics();
  EXPECT_EQ(samples["eddy_runs_in_flight"], 0);
  EXPECT_EQ(samples["eddy_run_duration_seconds_count"], 3);
}

TEST_F(LoadTest, AConnectionTooManyIsRefusedUntilOneEnds) {
  server_options_.http.max_connections = 2;
  start(build_gated);
  std::vector<std::unique_ptr<RawClient>> open;
  for (int i = 0; i < 2; ++i) {
    open.push_back(std::make_unique<RawClient>(server_->port()));
    open.back()->send("GET /healthz HTTP/1.1\r\n\r\n");
    EXPECT_THAT(open.back()->receive_until("ok\n"), HasSubstr("200 OK"));
  }
  expect_error(client().Get("/healthz"), 503, "more than 2 connections");
  expect_error(client().Get("/healthz"), 503, "more than 2 connections");
  EXPECT_EQ(server_->metrics().num_responses(), 4u);
  open.pop_back();
  await([&] {
    const auto answer = client().Get("/healthz");
    return answer && answer->status == 200;
  });
}

TEST_F(LoadTest, ClientsBesideEachOtherGetTheirOwnAnswers) {
  constexpr int kThreads = 8;
  constexpr int kRequests = 50;
  start(build_adding);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      httplib::Client http = client();
      http.set_keep_alive(t % 2 == 0);
      for (int i = 0; i < kRequests; ++i) {
        const std::string body = R"({"inputs": {"a": [[)" + std::to_string(t) + ", 0]]" +
                                 R"(, "b": [[0, )" + std::to_string(i) + "]]}}";
        const auto answer = http.Post("/v1/run", body, "application/json");
        ASSERT_TRUE(answer) << httplib::to_string(answer.error());
        ASSERT_EQ(answer->status, 200) << answer->body;
        EXPECT_EQ(Json::parse(answer->body)["outputs"]["y"]["data"], Json({t, i}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  auto samples = metrics();
  EXPECT_EQ(samples["eddy_http_requests_total{code=\"200\"}"], kThreads * kRequests);
  EXPECT_EQ(samples["eddy_run_duration_seconds_count"], kThreads * kRequests);
  EXPECT_EQ(samples["eddy_runs_in_flight"], 0);
}

TEST_F(LoadTest, AClientThatLeavesTakesItsRunWithIt) {
  session_options_.max_runs_in_flight = 1;
  start(build_countdown);
  const std::string endless = number("0.5");
  for (int i = 0; i < 2; ++i) {
    RawClient leaving(server_->port());
    leaving.send(post_request(endless));
    await_in_flight(1);
  }
  await_in_flight(0);
  const auto answer = post(number("3"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(Json::parse(answer->body)["outputs"]["end"]["data"], Json::array({0}));
}

TEST_F(LoadTest, AStopFinishesWhatRunsAndTakesNothingNew) {
  start(build_gated);
  const int port = server_->port();
  RawClient asks(port);
  RawClient runs(port);
  for (RawClient* each : {&asks, &runs}) {
    each->send("GET /healthz HTTP/1.1\r\n\r\n");
    EXPECT_THAT(each->receive_until("ok\n"), HasSubstr("200 OK"));
  }
  auto running = send("1");
  gate_.await_entered(1);
  auto stopping = std::async(std::launch::async, [this] { server_->stop(std::chrono::hours(1)); });
  await_closed();
  // Connections that are open say so, once.
  asks.send("GET /healthz HTTP/1.1\r\n\r\n");
  const std::string health = asks.receive_all();
  EXPECT_THAT(health, HasSubstr("HTTP/1.1 503"));
  EXPECT_THAT(health, HasSubstr("Connection: close"));
  EXPECT_THAT(health, HasSubstr("draining\n"));
  runs.send(post_request(number("2")));
  const std::string refused = runs.receive_all();
  EXPECT_THAT(refused, HasSubstr("HTTP/1.1 503"));
  EXPECT_THAT(refused, HasSubstr("Retry-After: 1"));
  EXPECT_THAT(refused, HasSubstr("the server is stopping"));
  EXPECT_EQ(running.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  gate_.open();
  const httplib::Result answer = running.get();
  ASSERT_TRUE(answer) << httplib::to_string(answer.error());
  EXPECT_EQ(answer->status, 200) << answer->body;
  stopping.get();
}

TEST_F(LoadTest, AStopCancelsWhatOutlastsItsTime) {
  start(build_countdown);
  auto endless = send("0.5");
  await_in_flight(1);
  server_->stop(std::chrono::milliseconds(0));
  expect_error(endless.get(), 503, "cancelled");
  EXPECT_EQ(server_->metrics().num_in_flight(), 0);
  server_->stop(std::chrono::milliseconds(0));  // again: nothing is left to do
}

TEST_F(LoadTest, AStopDoesNotWaitForConnectionsThatAreIdleOrStuck) {
  start(build_gated);
  RawClient idle(server_->port());
  RawClient served(server_->port());
  RawClient stuck(server_->port());
  served.send("GET /healthz HTTP/1.1\r\n\r\n");
  EXPECT_THAT(served.receive_until("ok\n"), HasSubstr("200 OK"));
  stuck.send("POST /v1/run HTTP/1.1\r\nContent-Length: 100\r\n\r\n{");
  await([&] { return server_->metrics().num_responses() == 1; });
  server_->stop(std::chrono::milliseconds(1));
  EXPECT_EQ(idle.receive_all(), "");
  EXPECT_EQ(served.receive_all(), "");
}

}  // namespace
}  // namespace eddy::server
