// Claim: requests of several connections share a run, each is answered with its own part or its own
// error, and the metrics show how many samples shared a run.
#include <atomic>
#include <thread>
#include <vector>

#include "tests/examples/server/serving.h"

namespace eddy::server {
namespace {

class BatchingServerTest : public ServingTest {
 protected:
  void start_batching(int64_t max_samples, std::chrono::nanoseconds wait_limit) {
    GraphBuilder builder(library_.ops());
    build_adding(builder);
    Result<Graph> graph = builder.finish();
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    const auto sizes = std::make_shared<BatchSizes>();
    server_options_.batch_sizes = sizes;
    const Batching batching{
        .dimension = "batch",
        .max_samples = max_samples,
        .wait_limit = wait_limit,
        .on_batch = [sizes](size_t, int64_t num_samples) { sizes->add(num_samples); }};
    auto session = BatchingSession::create(library_, std::move(*graph), session_options_, batching);
    ASSERT_TRUE(session.is_ok()) << session.status().to_string();
    auto server = ModelServer::start(std::move(*session), server_options_);
    ASSERT_TRUE(server.is_ok()) << server.status().to_string();
    server_ = std::move(*server);
  }

  // y = a + b of so many rows that begin with `first`; whether the answer is right.
  bool asks(int rows, double first) const {
    Json a = Json::array(), b = Json::array(), y = Json::array();
    for (int i = 0; i < rows; ++i) {
      a.push_back({first + i, 1});
      b.push_back({1, 2});
      y.push_back(first + i + 1);
      y.push_back(3);
    }
    const auto answer = post(Json({{"inputs", {{"a", a}, {"b", b}}}}).dump());
    if (!answer || answer->status != 200) return false;
    const Json made = Json::parse(answer->body)["outputs"]["y"];
    return made["shape"] == Json({rows, 2}) && made["data"] == y;
  }
};

TEST_F(BatchingServerTest, ConnectionsShareARun) {
  start_batching(8, std::chrono::hours(1));
  std::atomic<int> num_right{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&, i] { num_right += asks(2, 10 * i) ? 1 : 0; });
  }
  // What does not fit into the batch that gathers is answered meanwhile.
  EXPECT_TRUE(asks(20, 7));
  expect_error(post(R"({"inputs": {"a": [[1, 2]], "b": [[1, 2], [3, 4]]}})"), 400,
               "dimension 'batch' is 1 in one input, but axis 0 of input 'b' is 2");
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(num_right, 4);
  const auto lines = metrics();
  EXPECT_EQ(lines.at("eddy_batch_samples_bucket{le=\"8\"}"), 2);  // the refused one, too
  EXPECT_EQ(lines.at("eddy_batch_samples_bucket{le=\"4\"}"), 1);
  EXPECT_EQ(lines.at("eddy_batch_samples_bucket{le=\"+Inf\"}"), 3);
}

TEST_F(BatchingServerTest, ManyClientsGetTheirOwnAnswers) {
  start_batching(16, std::chrono::microseconds(200));
  std::atomic<int> num_right{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&, c] {
      for (int i = 0; i < 40; ++i) num_right += asks(1 + (c + i) % 3, 100 * c + i) ? 1 : 0;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(num_right, 8 * 40);
  EXPECT_GE(metrics().at("eddy_batch_samples_sum"), 8 * 40);
}

TEST_F(BatchingServerTest, AStopEndsWhatGathers) {
  start_batching(8, std::chrono::hours(1));
  std::thread waiting([&] {
    expect_error(post(R"({"inputs": {"a": [[1, 2]], "b": [[1, 2]]}})"), 503, "cancelled");
  });
  await([&] { return server_->metrics().num_in_flight() == 1; });
  server_->stop(std::chrono::milliseconds(0));
  waiting.join();
}

}  // namespace
}  // namespace eddy::server
