// Claim: over HTTP a model answers what its session does, and each request that it cannot answer
// has a code and a line that say why. A connection serves many requests.
#include "examples/server/server.h"

#include <mutex>

#include "examples/server/json_values.h"
#include "tests/examples/server/serving.h"

namespace eddy::server {
namespace {

using ::testing::HasSubstr;

std::string adding(const std::string& a, const std::string& b) {
  return R"({"inputs": {"a": )" + a + R"(, "b": )" + b + "}}";
}

TEST_F(ServingTest, AnswersAreThoseOfTheSession) {
  start(build_adding);
  for (const int64_t rows : {0, 1, 3, 200}) {
    std::vector<float> a;
    std::vector<float> b;
    for (int64_t i = 0; i < 2 * rows; ++i) {
      a.push_back(1.0f / static_cast<float>(i + 1));
      b.push_back(i == 3 ? HUGE_VALF : 1e-30f * static_cast<float>(i));
    }
    const NamedTensors inputs = {{"a", Tensor::of<float>({rows, 2}, std::span<const float>(a))},
                                 {"b", Tensor::of<float>({rows, 2}, std::span<const float>(b))}};
    const auto wanted = server_->session().run(inputs);
    ASSERT_TRUE(wanted.is_ok());
    // The form of the inputs is that of outputs.
    const Json as_outputs = Json::parse(outputs_json(inputs));
    const auto answer = post(Json({{"inputs", as_outputs["outputs"]}}).dump());
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200) << answer->body;
    EXPECT_EQ(answer->get_header_value("Content-Type"), "application/json");
    EXPECT_EQ(answer->body, outputs_json(*wanted));
  }
}

TEST_F(ServingTest, NestedListsAreInputsToo) {
  start(build_adding);
  const auto answer = post(adding("[[1, 2], [3, 4]]", "[[10, 20], [\"-Infinity\", \"NaN\"]]"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body,
            "{\"outputs\":{\"y\":{\"type\":\"float\",\"shape\":[2,2],\"data\":[11,22,\"-Infinity\","
            "\"NaN\"]}}}\n");
}

TEST_F(ServingTest, EachBadInputIsNamedAndTheNextRequestIsServed) {
  start(build_adding);
  const std::pair<std::string, std::string> bad[] = {
      {"", "invalid argument: the request is no JSON"},
      {"{}", "a request is {\"inputs\": {\"NAME\": ...}}"},
      {R"({"inputs": {}})", "input 'a' (float[batch,2]) is missing"},
      {R"({"inputs": {"a": [[1, 2]]}})", "input 'b' (float[batch,2]) is missing"},
      {R"({"inputs": {"c": 1}})", "there is no input 'c'; the model's inputs are: a, b"},
      {adding("[1, 2]", "[[1, 2]]"), "input 'a' must be float[batch,2], but float[2] was given"},
      {adding("[[1, 2, 3]]", "[[1, 2]]"), "but float[1,3] was given"},
      {adding("[[1, 2]]", "[[1, 2], [3, 4]]"), "dimension 'batch' is 1 in one input"},
      {adding(R"([["one", 2]])", "[[1, 2]]"), "element 0 is \"one\", which is no float"},
      {adding(R"({"type": "int64", "data": [[1, 2]]})", "[[1, 2]]"), "give float"},
      {adding("[[1], [2, 3]]", "[[1, 2]]"), "differ in length or depth"},
      {std::string(100'000, '['), "stands in a wrong place"},
      {R"({"inputs": {"a": )" + std::string(100'000, '['), "nested more than 8 deep"},
      {adding(R"({"shape": [0, 9000000000000000000], "data": []})", "[]"), "too large"},
  };
  for (const auto& [body, words] : bad) {
    SCOPED_TRACE(body.substr(0, 200));
    expect_error(post(body), 400, words);
    const auto good = post(adding("[[1, 2]]", "[[3, 4]]"));
    ASSERT_TRUE(good);
    EXPECT_EQ(good->status, 200);
  }
}

TEST_F(ServingTest, PathsAndMethodsThatDoNotExistAreRefused) {
  start(build_adding);
  httplib::Client http = client();
  expect_error(http.Get("/"), 404, "there is no /; there are POST /v1/run");
  expect_error(http.Get("/v1/runs"), 404, "there is no /v1/runs");
  expect_error(http.Post("/elsewhere", "{}", "application/json"), 404, "there is no /elsewhere");
  const auto get = http.Get("/v1/run");
  expect_error(get, 405, "/v1/run has no GET; use POST");
  EXPECT_EQ(get->get_header_value("Allow"), "POST");
  const auto put = http.Put("/metrics", "x", "text/plain");
  expect_error(put, 405, "/metrics has no PUT; use GET, HEAD");
  EXPECT_EQ(put->get_header_value("Allow"), "GET, HEAD");
  expect_error(http.Delete("/v1/model"), 405, "has no DELETE");
  const auto head = http.Head("/healthz");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 200);
  EXPECT_EQ(head->body, "");
}

TEST_F(ServingTest, BodiesAreBoundedInWhateverFormTheyCome) {
  server_options_.max_body_bytes = 10'000;
  start(build_adding);
  const std::string good = adding("[[1, 2]]", "[[3, 4]]");
  const std::string at_limit = good + std::string(10'000 - good.size(), ' ');
  EXPECT_EQ(post(at_limit)->status, 200);
  expect_error(post(at_limit + " "), 413, "larger than 10000 bytes (--max-body-bytes)");
  expect_error(post(std::string(5'000'000, ' ')), 413, "larger than 10000 bytes");

  const auto post_chunks = [&](const std::string& body) {
    return client().Post(
        "/v1/run",
        [&](size_t, httplib::DataSink& sink) {
          sink.write(body.data(), body.size());
          sink.done();
          return true;
        },
        "application/json");
  };
  EXPECT_EQ(post_chunks(at_limit)->status, 200);
  expect_error(post_chunks(at_limit + " "), 413, "decoded or in chunks");

  httplib::Client zipping = client();
  zipping.set_compress(true);
  const auto post_zipped = [&](const std::string& body) {
    return zipping.Post("/v1/run", body, "application/json");
  };
  EXPECT_EQ(post_zipped(at_limit)->status, 200);
  expect_error(post_zipped(std::string(5'000'000, ' ')), 413, "decoded or in chunks");
}

TEST_F(ServingTest, TheModelIsDescribed) {
  start(build_adding);
  const auto answer = client().Get("/v1/model");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->get_header_value("Content-Type"), "application/json");
  const Json json = Json::parse(answer->body);
  EXPECT_EQ(json["inputs"], Json::parse(R"([
      {"name": "a", "type": "float", "shape": ["batch", 2]},
      {"name": "b", "type": "float", "shape": ["batch", 2]}])"));
  EXPECT_EQ(json["outputs"],
            Json::parse(R"([{"name": "y", "type": "float", "shape": ["batch", 2]}])"));
  EXPECT_EQ(json["fingerprint"], server_->session().fingerprint());
}

TEST_F(ServingTest, AModelWithoutJsonIsRefusedAtTheStart) {
  GraphBuilder b(library_.ops());
  b.output("y", b.op("Identity", {b.input("c", tensor_type(ElementType::kComplex64, {2}))}));
  Result<Graph> graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  auto session = Session::create(library_, std::move(*graph), session_options_);
  ASSERT_TRUE(session.is_ok()) << session.status().to_string();
  const auto server = ModelServer::start(std::move(*session), server_options_);
  EXPECT_EQ(server.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(server.status().message(), HasSubstr("input 'c' is complex64[2]"));
}

TEST_F(ServingTest, AnAddressThatIsTakenOrNoneIsRefusedAtTheStart) {
  start(build_adding);
  const std::unique_ptr<ModelServer> first = std::move(server_);
  const auto second = [&](const std::string& host, int port) {
    GraphBuilder b(library_.ops());
    build_adding(b);
    auto session = Session::create(library_, std::move(*b.finish()), session_options_);
    return ModelServer::start(std::move(*session), {.host = host, .port = port}).take_status();
  };
  EXPECT_THAT(second("127.0.0.1", first->port()).message(), HasSubstr("Address already in use"));
  EXPECT_EQ(second("no address", 0).code(), StatusCode::kInvalidArgument);
}

TEST_F(ServingTest, ARunThatPassesItsDeadlineHas504) {
  server_options_.timeout = std::chrono::milliseconds(20);
  start(build_countdown);
  expect_error(post(R"({"inputs": {"n": 0.5}})"), 504, "deadline");
}

TEST_F(ServingTest, ARunThatFailsHas500AndTheNodesName) {
  start([](GraphBuilder& b) {
    const Value rows = b.vector<float>({1, 2, 3});
    const Value index = b.input("index", tensor_type(ElementType::kInt64, {}));
    b.output("y", b.op("Gather", {rows, index}, {}, {.name = "pick"}));
  });
  expect_error(post(R"({"inputs": {"index": 7}})"), 500, "pick");
  const auto answer = post(R"({"inputs": {"index": 2}})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(Json::parse(answer->body)["outputs"]["y"]["data"], Json::array({3}));
}

TEST_F(ServingTest, MetricsSayWhatWasServed) {
  start(build_adding);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(post(adding("[[1, 2]]", "[[3, 4]]"))->status, 200);
  EXPECT_EQ(post("{")->status, 400);
  EXPECT_EQ(post(R"({"inputs": {}})")->status, 400);
  EXPECT_EQ(client().Get("/nowhere")->status, 404);
  const auto page = client().Get("/metrics");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->get_header_value("Content-Type"), "text/plain; version=0.0.4");
  auto samples = metrics_lines(page->body);
  EXPECT_EQ(samples["eddy_http_requests_total{code=\"200\"}"], 3);
  EXPECT_EQ(samples["eddy_http_requests_total{code=\"400\"}"], 2);
  EXPECT_EQ(samples["eddy_http_requests_total{code=\"404\"}"], 1);
  EXPECT_EQ(samples["eddy_run_duration_seconds_count"], 3);
  EXPECT_GT(samples["eddy_run_duration_seconds_sum"], 0);
  EXPECT_EQ(samples["eddy_runs_in_flight"], 0);
  EXPECT_GE(samples["eddy_tensor_peak_bytes"], samples["eddy_tensor_bytes"]);
  EXPECT_GE(samples["eddy_connections"], 1);
}

TEST_F(ServingTest, OneConnectionServesManyRequestsGoodAndBad) {
  server_options_.http.max_connections = 1;  // a second one would be refused
  start(build_adding);
  httplib::Client http = client();
  http.set_keep_alive(true);
  for (int i = 0; i < 30; ++i) {
    const auto good = http.Post("/v1/run", adding("[[1, 2]]", "[[3, 4]]"), "application/json");
    ASSERT_TRUE(good);
    EXPECT_EQ(good->status, 200);
    EXPECT_EQ(good->get_header_value_count("Connection"), 0u);
    expect_error(http.Post("/v1/run", "{", "application/json"), 400, "no JSON");
    EXPECT_EQ(http.Get("/healthz")->body, "ok\n");
  }
}

TEST_F(ServingTest, EachFailedRequestIsOneLineOfTheLog) {
  std::mutex mutex;
  std::vector<std::string> lines;
  server_options_.log = [&](std::string_view line) {
    const std::scoped_lock lock(mutex);
    lines.emplace_back(line);
  };
  start(build_adding);
  EXPECT_EQ(post(adding("[[1, 2]]", "[[3, 4]]"))->status, 200);
  EXPECT_EQ(post("{")->status, 400);
  EXPECT_EQ(client().Get("/a%0Ab")->status, 404);
  const std::scoped_lock lock(mutex);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], ::testing::StartsWith("POST /v1/run: 400 {\"error\":\"invalid argument: "));
  EXPECT_THAT(lines[1], ::testing::StartsWith("GET /a?b: 404 {\"error\":\"there is no /a?b; "));
  for (const std::string& line : lines) EXPECT_EQ(line.find('\n'), line.npos);
}

}  // namespace
}  // namespace eddy::server
